"""Files that appear whole or not at all: written under another name, synced to disk, then renamed."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A name to write to that becomes `path` when the block ends well, and is removed when it does not.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as unfinished:
    ...     _ = unfinished.write_text("whole")
    >>> [file.name for file in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'whole')
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield unfinished
        sync(unfinished)
        os.replace(unfinished, path)
        sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8 to `path`, whole or not at all."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON; a number that JSON has no word for (NaN, infinity) becomes null."""
    write_text(path, json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_lines(path: str | Path, records: Iterable[Any]) -> None:
    """Write records as JSON, one a line."""
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        file.writelines(line(record) for record in records)


def append_lines(path: str | Path, records: Iterable[Any]) -> None:
    """Append records to a file, a line of JSON each, in place of a last line that a kill tore."""
    text = "".join(map(line, records)).encode()
    with Path(path).open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(text)


def line(record: Any) -> str:
    """One record as a line of JSON.

    >>> line({"step": 1, "loss": float("nan")})
    '{"step": 1, "loss": null}\\n'
    """
    return json.dumps(plain(record), ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: paths as text, tuples as lists, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


def sync(path: Path) -> None:
    """Have a file or a folder's list of names on disk before going on; a system that cannot is let be."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # e.g. a folder on Windows
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writable_folder(path: str | Path, name: str = "folder", *, make: bool = True) -> Path:
    """Try to write in the folder, which is made if it is not there; an OSError in one sentence if that fails.

    Without `make` nothing is left behind: of a folder that is not there the first above it that is has to do.
    """
    path = Path(path)
    try:
        if make:
            path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=_nearest(path)):
            pass
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{name}: {_nearest(path)} is a file; expected a folder to write to") from None
    except OSError as error:
        raise type(error)(f"{name}: {path} cannot be written to ({error.strerror or error})") from None
    return path


def _nearest(path: Path) -> Path:
    """The path itself, or the first above it that is there."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())
