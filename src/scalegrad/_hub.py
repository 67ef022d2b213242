"""Whether the hub of models and data can be asked: without a network each question takes half a minute to fail."""

from __future__ import annotations

import functools
import os
import socket
import urllib.parse
import urllib.request

_SECONDS = 3.0


def hub_problem() -> str | None:
    """Why the hub cannot be asked, or None: a connection is tried, once in a process, and nothing is asked for.

    Behind a proxy that cannot be told, and no problem is known.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE is set"
    address = _address()
    if {"http", "https", "all"} & {*urllib.request.getproxies()}:
        return None
    if _connects(hub_host(), address.port or (80 if address.scheme == "http" else 443)):
        return None
    return f"{hub_host()} does not answer"


def hub_host() -> str:
    """The hub's name, as the environment has it."""
    return _address().hostname or ""


@functools.cache
def _connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_SECONDS):
            return True
    except OSError:
        return False


def _address() -> urllib.parse.SplitResult:
    return urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
