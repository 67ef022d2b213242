"""Files and folders by the names users give them: two spellings may be one place."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any


def same_place(one: Any, other: Any, names: Collection[str] = ()) -> bool:
    """Whether two values, or lists of them item by item, are equal or name one file or folder that is here.

    What is one of `names`, or no file or folder here (a name of the hub), is compared as text.

    >>> same_place("/", "//../"), same_place(["/"], ["/."]), same_place("gpt2", "openai/gpt2")
    (True, True, False)
    >>> same_place(".", "./", names=["."])
    False
    """
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same_place(a, b, names) for a, b in zip(one, other, strict=True))
    if one == other or not (isinstance(one, str) and isinstance(other, str)) or {one, other} & {*names}:
        return bool(one == other)
    first, second = Path(one).expanduser(), Path(other).expanduser()
    return first.exists() and second.exists() and first.resolve() == second.resolve()
