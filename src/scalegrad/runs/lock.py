"""One process at a time in a folder, or at a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_here(folder: str | Path) -> Iterator[None]:
    """Nobody else works in `folder` meanwhile; BlockingIOError in one sentence where somebody does.

    The lock is on the folder itself, so it leaves no file. A system that has none (Windows) is let be.

    >>> import tempfile
    >>> with only_here(folder := tempfile.mkdtemp()), only_here(folder):
    ...     pass
    Traceback (most recent call last):
    BlockingIOError: another process is at work in ...: wait for it to end, or name another folder
    """
    if sys.platform == "win32":  # a folder cannot be opened there
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        if not take_lock(place):
            raise BlockingIOError(f"another process is at work in {folder}: wait for it to end, or name another folder")
        yield
    finally:
        os.close(place)


def take_lock(descriptor: int) -> bool:
    """Lock an open file or folder until it is closed; False where another process holds the lock.

    The lock is the system's and ends with the process, however that ends. A system that has none always says True.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
