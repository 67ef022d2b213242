"""The settings at the head of a GGUF file, read alone: the library takes half a minute over a large vocabulary."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


def read_header(path: str | Path) -> dict[str, Any]:
    """Every setting of the file that is no list, by its key."""
    settings = {}
    with Path(path).open("rb") as file:
        try:
            magic, version, _tensors, count = struct.unpack("<4sIQQ", file.read(24))
            if magic != b"GGUF" or version < 2:
                raise ValueError(f"it begins with {magic!r}, version {version}")
            for _ in range(count):
                key = _text(file)
                (kind,) = _numbers(file, "I")
                if kind == _LIST:
                    _skip_list(file)
                else:
                    settings[key] = _text(file) if kind == _TEXT else _numbers(file, _NUMBERS[kind])[0]
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise ValueError(f"{path} is no GGUF file that can be read ({error})") from None
    return settings


def _numbers(file: BinaryIO, letter: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{letter}", file.read(struct.calcsize(f"<{letter}")))


def _text(file: BinaryIO) -> str:
    (size,) = _numbers(file, "Q")
    if size > 1 << 24:
        raise ValueError(f"a text of {size} bytes")
    return file.read(size).decode(errors="replace")


def _skip_list(file: BinaryIO) -> None:
    kind, count = _numbers(file, "IQ")
    if kind == _TEXT:
        for _ in range(count):
            (size,) = _numbers(file, "Q")
            file.seek(size, os.SEEK_CUR)
    else:
        file.seek(count * struct.calcsize(f"<{_NUMBERS[kind]}"), os.SEEK_CUR)
