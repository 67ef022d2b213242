"""Texts a user brings, one at a time: .txt, .jsonl, .csv (plain, .gz or .xz) or standard input.

A file is never held whole, and what is wrong with it is said in one sentence that names the file and the line.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from scalegrad.counts import counted

FORMATS = ("txt", "jsonl", "csv")
SEPARATORS = ("line", "blank", "file")
DEFAULT_FIELDS = ("continuation", "completion", "text")  # the first of these that a record has, if no field is named

_LONGEST = 8 * 2**20  # bytes of one text; a longer one costs gigabytes to look through for loops
_REPORT_EVERY = 256  # lines between two calls of `progress`
_SUFFIXES = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}

Lines = Iterator[tuple[int, str]]


def read_texts(
    source: str | Path,
    field: str | None = None,
    *,
    format: str | None = None,
    separator: str = "line",
    progress: Callable[[int], None] | None = None,
) -> Iterator[str]:
    """Yield the texts of `source`, a path or "-" for standard input, without holding the file in memory.

    - .txt: a text a line (`separator="line"`; an empty line is an empty text, so that files stay paired by line),
      separated by blank lines ("blank"), or the file is one text ("file");
    - .jsonl: a JSON string a line, or an object whose `field` is the text; .csv: the column `field`, with a header.
      No field named: the first of "continuation", "completion", "text" that is there, or the only one;
    - .gz and .xz after any of these; standard input is JSONL where a field is named, else plain lines;
    - `format` ("txt", "jsonl", "csv") overrides the suffix; `progress` is called with the bytes read so far.

    Raises ValueError that names the file, the line and what was expected there.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "texts.jsonl"
    >>> _ = path.write_text('{"id": 1, "text": "one two"}\\n{"id": 2, "text": "three"}\\n')
    >>> list(read_texts(path))
    ['one two', 'three']
    >>> list(read_texts(path, field="id"))
    Traceback (most recent call last):
    ValueError: ...texts.jsonl, line 1: field 'id' is a number; expected a string
    """
    name = "standard input" if str(source) == "-" else str(source)
    kind = _format(str(source), name, field, format)
    if separator not in SEPARATORS:
        raise ValueError(f"separator is {separator!r}; it may be {_quoted(SEPARATORS)}")
    if separator != "line" and kind != "txt":
        raise ValueError(f"separator {separator!r} is for plain text, but {name} is read as {kind}")
    return _read(source, name, kind, field, separator, progress)


def _format(source: str, name: str, field: str | None, format: str | None) -> str:
    if format is not None and format not in FORMATS:
        raise ValueError(f"format is {format!r}; it may be {_quoted(FORMATS)}")
    path = Path(source)
    suffix = path.with_suffix("").suffix if path.suffix in (".gz", ".xz") else path.suffix
    kind = format or (_SUFFIXES.get(suffix) if source != "-" else "jsonl" if field else "txt")
    if kind is None:
        raise ValueError(
            f"{name}: its suffix {suffix!r} is not one of {_quoted(_SUFFIXES)} (each also with .gz or .xz); "
            f"rename it or name its format, {_quoted(FORMATS)}"
        )
    if kind == "txt" and field is not None:
        raise ValueError(f"{name} is read as plain text, which has no field {field!r}; fields are for jsonl and csv")
    return kind


def _read(
    source: str | Path, name: str, kind: str, field: str | None, separator: str, progress: Callable[[int], None] | None
) -> Iterator[str]:
    empty = True
    with opened(source, name) as (stream, position):
        lines = _lines(stream, name, position, progress)
        if kind == "jsonl":
            texts = _from_jsonl(lines, name, field)
        elif kind == "csv":
            texts = _from_csv(lines, name, field)
        else:
            texts = _from_txt(lines, name, separator)
        for text in texts:
            empty = empty and not text.strip()
            yield text
    if empty:
        raise ValueError(f"{name} is empty: expected at least one text")


@contextlib.contextmanager
def opened(source: str | Path, name: str) -> Iterator[tuple[IO[bytes], Callable[[], int] | None]]:
    """The decompressed stream, and a function that tells how many bytes of the file on disk were read, if it is one."""
    if str(source) == "-":
        yield sys.stdin.buffer, None
        return
    path = Path(source)
    if path.is_dir():
        raise ValueError(f"{name} is a folder; expected a file of texts")
    if not path.exists():
        raise FileNotFoundError(f"{name}: there is no such file")
    with path.open("rb") as raw:
        unpacked: IO[bytes] = raw
        if path.suffix == ".gz":
            unpacked = gzip.open(raw)  # type: ignore[assignment]  # noqa: SIM115 (closed with raw)
        elif path.suffix == ".xz":
            unpacked = lzma.open(raw)  # noqa: SIM115
        yield unpacked, raw.tell if raw.seekable() else None  # a pipe cannot tell


def _lines(
    stream: IO[bytes], name: str, position: Callable[[], int] | None, progress: Callable[[int], None] | None
) -> Lines:
    """Numbered lines, decoded, each with its line end."""
    number, read = 0, 0
    try:
        while line := stream.readline(_LONGEST + 1):
            number, read = number + 1, read + len(line)
            if progress and number % _REPORT_EVERY == 0:
                progress(position() if position else read)
            yield number, _decoded(line, name, number)
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{name}: broken after line {number}, it cannot be decompressed ({error})") from None
    if progress:
        progress(position() if position else read)


def _decoded(line: bytes, name: str, number: int) -> str:
    if len(line) > _LONGEST:
        raise ValueError(f"{name}, line {number}: longer than {_LONGEST // 2**20} MiB; expected one text a line")
    if number == 1:
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{name} is UTF-16; expected UTF-8 text")
        line = line.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in line:
        raise ValueError(f"{name}, line {number}: a NUL byte, so this is a binary file; expected UTF-8 text")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}, line {number}: byte 0x{line[error.start]:02x} at position {error.start + 1} is not UTF-8; "
            "expected UTF-8 text"
        ) from None


def _from_txt(lines: Lines, name: str, separator: str) -> Iterator[str]:
    if separator == "line":
        for _, line in lines:
            yield line.rstrip("\r\n")
        return
    held: list[str] = []
    size = 0
    for number, line in lines:
        if separator == "blank" and not line.strip():
            if held:
                yield "".join(held).strip("\r\n")
            held, size = [], 0
            continue
        held.append(line)
        size += len(line)
        if size > _LONGEST:
            raise ValueError(f"{name}, line {number}: a text longer than {_LONGEST // 2**20} MiB")
    if held:
        yield "".join(held).strip("\r\n")


def _from_jsonl(lines: Lines, name: str, field: str | None) -> Iterator[str]:
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            record = json.loads(line)
        except RecursionError:
            raise ValueError(f"{where}: JSON nested too deeply; expected an object or a string") from None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{where}: not JSON ({error.msg} at character {error.pos + 1}); expected one object or string a line"
            ) from None
        if isinstance(record, dict):
            record = record[_chosen(list(record), field, where)]
            kept = f"field {field!r}" if field else "the text"
        else:
            kept = "the line"
        if not isinstance(record, str):
            raise ValueError(f"{where}: {kept} is {_kind(record)}; expected a string")
        yield _whole(record)


def _from_csv(lines: Lines, name: str, field: str | None) -> Iterator[str]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))  # its own limit is 128 KiB
    rows = csv.reader((line for _, line in lines), strict=True)
    column: int | None = None
    try:
        for row in rows:
            where = f"{name}, line {rows.line_num}"
            if column is None:
                column = row.index(_chosen(row, field, where))
            elif row:
                if column >= len(row):
                    raise ValueError(
                        f"{where}: {counted(len(row), 'column')}; expected more than {column}, as in the header"
                    )
                yield row[column]
    except csv.Error as error:
        raise ValueError(f"{name}, line {rows.line_num}: broken CSV ({error})") from None


def _chosen(fields: list[str], field: str | None, where: str) -> str:
    """The field to read: the one named, else a usual one, else the only one."""
    if field is None:
        found = [usual for usual in DEFAULT_FIELDS if usual in fields] or (fields if len(fields) == 1 else [])
    else:
        found = [field] if field in fields else []
    if not found:
        wanted = f"no field {field!r}" if field else f"no field {_quoted(DEFAULT_FIELDS)} and none was named"
        raise ValueError(f"{where}: {wanted}; its fields are {', '.join(map(repr, fields)) or '(none)'}")
    return found[0]


def _whole(text: str) -> str:
    """Half characters, which JSON can escape and UTF-8 cannot write, become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _quoted(names: object) -> str:
    *most, last = (f'"{name}"' for name in names)  # type: ignore[attr-defined]
    return f"{', '.join(most)} or {last}"
