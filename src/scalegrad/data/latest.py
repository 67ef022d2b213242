"""The last few results of slow work, for whoever asks for the same again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

Value = TypeVar("Value")


def file_identity(path: str | Path) -> Hashable:
    """What changes when a file does, as far as its folder tells; a file that is not there is itself."""
    path = Path(path)
    if not path.exists():
        return str(path)
    about = path.stat()
    return str(path.resolve()), about.st_size, about.st_mtime_ns, about.st_ino


class Latest(Generic[Value]):
    """The values of the last `size` keys that were asked for.

    >>> squares = Latest(size=1)
    >>> squares.get(3, lambda: 9), squares.get(3, lambda: print("made again")), squares.get(4, lambda: 16)
    (9, 9, 16)
    >>> len(squares)
    1
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: dict[Hashable, Value] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made if it is not there; a key of None is never remembered."""
        if key is None:
            return make()
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value  # the last of all
        while len(self._values) > self.size:
            del self._values[next(iter(self._values))]
        return value
