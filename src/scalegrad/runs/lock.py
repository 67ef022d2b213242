"""One process at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_here(folder: str | Path) -> Iterator[None]:
    """Nobody else works in `folder` meanwhile; BlockingIOError in one sentence where somebody does.

    The lock is the system's, on the folder itself: it leaves no file, and ends with the process that holds it however
    that ends. A system that has none (Windows) is let be.

    >>> import tempfile
    >>> with only_here(folder := tempfile.mkdtemp()), only_here(folder):
    ...     pass
    Traceback (most recent call last):
    BlockingIOError: another process is at work in ...: wait for it to end, or name another folder
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = f"another process is at work in {folder}: wait for it to end, or name another folder"
            raise BlockingIOError(told) from None
        yield
    finally:
        os.close(place)
