"""How far a piece of work is: the one type of the callables that are told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""(what is done, how much of it is done, how much there is in all: 0 where nobody knows)."""

Done: TypeAlias = Callable[[int, int], None]
"""(how much is done, how much there is in all) of one piece of work."""


def bind(progress: Progress | None, what: str) -> Done | None:
    """`progress` for the one piece of work that is called `what`.

    >>> bind(print, "reading")(3, 7)
    reading 3 7
    """
    return None if progress is None else lambda done, total: progress(what, done, total)
