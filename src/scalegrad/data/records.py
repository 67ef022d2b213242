"""The records in the bytes of one file: plain text, JSONL or CSV, each with the line it stands in."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from scalegrad.counts import counted

_LONGEST = 8 * 2**20  # bytes of one text; a longer one costs gigabytes to look through for loops
_REPORT_EVERY = 256  # lines between two reports of how much was read
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # JSON can spell half a surrogate pair; no encoding can store it

Lines = Iterable[tuple[int, str]]


class Record(NamedTuple):
    """What stands at one place: a text (a line, a JSON string), or fields (a JSON object, a row of a CSV)."""

    content: str | dict[str, Any]
    file: str
    line: int
    unit: str = "line"  # what `line` counts

    @property
    def place(self) -> str:
        """The file and the line, for messages."""
        return f"{self.file}, {self.unit} {self.line}"


def records_in(
    stream: IO[bytes],
    name: str,
    kind: str,
    separator: str,
    problems: Problems,
    report: Callable[[int], None],
    position: Callable[[], int] | None,
) -> Iterator[Record]:
    """The records of a decompressed `stream` of the format `kind`.

    `report` is told how many bytes were read: what `position` says, else those of the stream.
    """
    lines = _lines(stream, name, position, report)
    if kind == "csv":
        yield from _from_csv(lines, name, problems)
        return
    for number, text in _from_txt(lines, name, separator) if kind == "txt" else lines:
        record = Record(text, name, number)
        if kind == "jsonl" and not text.strip():
            continue
        if _is_utf8(text, record, problems):
            parsed = record if kind == "txt" else _from_json(record, problems)
            if parsed is not None:
                yield parsed


def _lines(
    stream: IO[bytes], name: str, position: Callable[[], int] | None, report: Callable[[int], None]
) -> Iterator[tuple[int, str]]:
    """Numbered lines, each with its line end; bytes that are not UTF-8 become lone surrogates."""
    number, read = 0, 0
    try:
        while line := stream.readline(_LONGEST + 1):
            number, read = number + 1, read + len(line)
            if number % _REPORT_EVERY == 0:
                report(position() if position else read)
            yield number, _decoded(line, name, number)
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{name}: broken after line {number}, it cannot be decompressed ({error})") from None
    report(position() if position else read)


def _decoded(line: bytes, name: str, number: int) -> str:
    if len(line) > _LONGEST:
        raise ValueError(f"{name}, line {number}: longer than {_LONGEST // 2**20} MiB; expected one text a line")
    if number == 1:
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{name} is UTF-16; expected UTF-8 text")
        line = line.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in line:
        raise ValueError(f"{name}, line {number}: a NUL byte, so this is a binary file; expected UTF-8 text")
    return line.decode(errors="surrogateescape")


def _is_utf8(text: str, record: Record, problems: Problems) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = len(text[: error.start].encode()) + 1
        problems.add("not UTF-8", record.place, f"byte 0x{ord(text[error.start]) - 0xDC00:02x} at position {at}")
        return False
    return True


def _from_txt(lines: Lines, name: str, separator: str) -> Iterator[tuple[int, str]]:
    """Texts with the line they begin in."""
    if separator == "line":
        for number, line in lines:
            yield number, line.rstrip("\r\n")
        return
    parts: list[str] = []
    size, first = 0, 1
    for number, line in lines:
        if separator == "blank" and not line.strip():
            if parts:
                yield first, "".join(parts).strip("\r\n")
            parts, size = [], 0
            continue
        first = first if parts else number
        parts.append(line)
        size += len(line)
        if size > _LONGEST:
            raise ValueError(f"{name}, line {number}: a text longer than {_LONGEST // 2**20} MiB")
    if parts:
        yield first, "".join(parts).strip("\r\n")


def _from_json(record: Record, problems: Problems) -> Record | None:
    line = str(record.content)
    try:
        content = json.loads(line)
    except RecursionError:
        problems.add("JSON nested too deeply", record.place)
        return None
    except json.JSONDecodeError as error:
        problems.add("not JSON", record.place, f"{error.msg} at character {error.pos + 1}")
        return None
    if not isinstance(content, str | dict):
        problems.add(f"the line is {type_name(content)}, not an object or a text", record.place)
        return None
    return record._replace(content=_whole(content) if _HALF_CHARACTER.search(line) else content)


def _from_csv(lines: Lines, name: str, problems: Problems) -> Iterator[Record]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))  # its own limit is 128 KiB
    rows = csv.reader((line for _, line in lines), strict=True)
    header: list[str] | None = None
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problems.add("broken CSV", f"{name}, line {rows.line_num}", str(error))
            continue
        record = Record("", name, rows.line_num)
        if not row or not _is_utf8("\n".join(row), record, problems):
            continue
        if header is None:
            header = row
        elif len(row) != len(header):
            expected = f"the header has {len(header)}"
            problems.add("another number of columns", record.place, f"{counted(len(row), 'column')}, {expected}")
        else:
            yield record._replace(content=dict(zip(header, row, strict=True)))


def _whole(value: Any) -> Any:
    """Half characters, which JSON can escape and UTF-8 cannot write, become U+FFFD."""
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


def type_name(value: object) -> str:
    """What JSON calls the type of a value that is not a text."""
    names = {dict: "an object", list: "a list", bool: "a truth value", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


_SHOWN = 3  # places that the sentence names for each problem
_STORED = 10_000  # places that are remembered for each problem


@dataclass
class Problems:
    """What to do with bad items, and what was wrong with them: with `skip` they are left out, else the first raises.

    >>> problems = Problems(skip=True)
    >>> problems.add("not JSON", "a.jsonl, line 7")
    >>> problems.add("not JSON", "a.jsonl, line 9", "Expecting value")
    >>> print(problems)
    2 left out: 2 × not JSON (a.jsonl, line 7; a.jsonl, line 9: Expecting value)
    >>> Problems().add("not JSON", "a.jsonl, line 7", "Expecting value")
    Traceback (most recent call last):
    ValueError: a.jsonl, line 7: not JSON (Expecting value); --skip-bad leaves such items out
    """

    skip: bool = False
    counts: Counter[str] = field(default_factory=Counter)  # problem -> items that have it
    places: dict[str, list[str]] = field(default_factory=dict)  # problem -> where it was seen, the first ones

    def add(self, what: str, place: str, detail: str = "") -> None:
        """Count that the item at `place` has the problem `what`, or raise."""
        if not self.skip:
            raise ValueError(f"{place}: {what}{f' ({detail})' if detail else ''}; --skip-bad leaves such items out")
        self.counts[what] += 1
        places = self.places.setdefault(what, [])
        if len(places) < _STORED:
            places.append(f"{place}: {detail}" if detail else place)

    def include(self, other: Problems) -> None:
        """Count the items of `other` as well."""
        self.counts += other.counts
        for what, places in other.places.items():
            self.places[what] = [*self.places.get(what, []), *places][:_STORED]

    @property
    def count(self) -> int:
        """How many items were left out."""
        return self.counts.total()

    def report(self) -> None:
        """Print the sentence on standard error, if any items were left out."""
        if self.count:
            print(self, file=sys.stderr)

    def __str__(self) -> str:
        """One sentence: how many items were left out, why, and the first places."""
        parts = []
        for what, count in self.counts.items():
            more = "; …" if count > _SHOWN else ""
            parts.append(f"{count:,} × {what} ({'; '.join(self.places[what][:_SHOWN])}{more})")
        return f"{self.count:,} left out: {', '.join(parts)}" if parts else "none left out"
