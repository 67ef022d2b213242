"""What users bring, one record at a time: .txt, .jsonl, .csv (plain, .gz or .xz), folders of these, standard input.

A file is never held whole. What is wrong with a line is said in one sentence that names the file and the line, and
stops the reading, or the line is left out and counted (`Problems`).
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Generic, TypeVar

from scalegrad.data.records import Problems, Record, records_in, type_name

if TYPE_CHECKING:
    from scalegrad.runs.progress import Progress

FORMATS = ("txt", "jsonl", "csv")
SEPARATORS = ("line", "blank", "file")
SUFFIXES = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
DEFAULT_FIELDS = ("continuation", "completion", "text")  # the first of these that a record has, if no field is named
STANDARD_INPUT = "-"


def read_texts(
    source: str | Path,
    field: str | None = None,
    *,
    format: str | None = None,
    separator: str = "line",
    empty: bool = True,
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> Iterator[str]:
    """Yield the texts of `source`, a file, a folder of files or "-" for standard input, one at a time.

    - .txt: a text a line (`separator="line"`; an empty line is an empty text, so that files stay paired by line, or is
      passed over, `empty=False`), separated by blank lines ("blank"), or the file is one text ("file");
    - .jsonl: a JSON string a line, or an object whose `field` is the text; .csv: the column `field`, with a header.
      No field named: the first of "continuation", "completion", "text" that is there, or the only one;
    - .gz and .xz after any of these; a folder is all such files in it, at any depth, sorted; standard input is JSONL
      where a field is named, else plain lines;
    - `format` ("txt", "jsonl", "csv") overrides the suffix; `progress` is told the bytes read so far.

    A bad line raises a ValueError that names the file and the line, unless `problems` skips and counts it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "texts.jsonl"
    >>> _ = path.write_text('{"id": 1, "text": "one two"}\\n{"id": "2", "text": "three"}\\n')
    >>> list(read_texts(path)), list(read_texts(path, field="id", problems=Problems(skip=True)))
    (['one two', 'three'], ['2'])
    >>> list(read_texts(path, field="id"))
    Traceback (most recent call last):
    ValueError: ...texts.jsonl, line 1: field 'id' is a number, not a text; --skip-bad leaves such items out
    """
    problems = Problems() if problems is None else problems
    if str(source) == STANDARD_INPUT and field and format is None:
        format = "jsonl"
    for file in files_of(source) if field else []:
        if (format or kind_of(file)) == "txt":
            raise ValueError(
                f"{name_of(file)} is read as plain text, which has no field {field!r}; fields are for jsonl and csv"
            )
    records = read_records(source, format=format, separator=separator, problems=problems, progress=progress)
    return _texts(records, name_of(source), field, empty, problems)


def read_records(
    source: str | Path,
    *,
    format: str | None = None,
    separator: str = "line",
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> Iterator[Record]:
    """Yield the records of `source`, as `read_texts` takes it, with their lines: the one reader of users' files.

    Blank lines of a .jsonl or .csv are passed over. Standard input is plain lines unless `format` says otherwise.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format is {format!r}; it may be {_quoted(FORMATS)}")
    if separator not in SEPARATORS:
        raise ValueError(f"separator is {separator!r}; it may be {_quoted(SEPARATORS)}")
    kinds = {file: format or _known_kind(file) for file in files_of(source)}
    for file, kind in kinds.items():
        if separator != "line" and kind != "txt":
            raise ValueError(f"separator {separator!r} is for plain text, but {name_of(file)} is read as {kind}")
    return _all_records(name_of(source), kinds, separator, Problems() if problems is None else problems, progress)


def files_of(source: str | Path, suffixes: Iterable[str] = tuple(SUFFIXES)) -> list[str]:
    """The files of `source`: itself, or of a folder those that end in `suffixes` (or .gz, .xz after), sorted."""
    path = Path(source).expanduser()
    if str(source) == STANDARD_INPUT:
        return [STANDARD_INPUT]
    if not path.exists():
        raise FileNotFoundError(f"{source}: there is no such file or folder")
    if not path.is_dir():
        return [str(path)]
    files = [str(file) for file in sorted(path.rglob("*")) if plain_suffix(file) in suffixes and file.is_file()]
    if not files:
        raise ValueError(f"{source} is a folder without a file that ends in {', '.join(suffixes)} (or .gz, .xz)")
    return files


def plain_suffix(path: str | Path) -> str:
    """What a file ends in, without .gz and .xz.

    >>> plain_suffix("a/b.jsonl.gz"), plain_suffix("b.tar")
    ('.jsonl', '.tar')
    """
    return Path(Path(path).name.removesuffix(".gz").removesuffix(".xz")).suffix


def kind_of(path: str | Path) -> str | None:
    """The format that a file's suffix names: "txt", "jsonl", "csv", or None; "txt" for standard input."""
    return "txt" if str(path) == STANDARD_INPUT else SUFFIXES.get(plain_suffix(path))


def name_of(source: str | Path) -> str:
    """What messages call `source`."""
    return "standard input" if str(source) == STANDARD_INPUT else str(source)


def text_of(record: Record, field: str | None, problems: Problems) -> str | None:
    """The text of a record: its `field`, else a usual field, else the only one; None if it is bad and skipped."""
    content = record.content
    if isinstance(content, str):
        return content
    chosen = _chosen(list(content), field)
    if chosen is None:
        wanted = f"no field {field!r}" if field else f"no field {_quoted(DEFAULT_FIELDS)} and none was named"
        problems.add(wanted, record.place, f"its fields are {', '.join(map(repr, content)) or '(none)'}")
        return None
    value = content[chosen]
    if not isinstance(value, str):
        problems.add(f"{f'field {field!r}' if field else 'the text'} is {type_name(value)}, not a text", record.place)
        return None
    return value


def _texts(records: Iterable[Record], name: str, field: str | None, empty: bool, problems: Problems) -> Iterator[str]:
    some = False
    for record in records:
        text = text_of(record, field, problems)
        if text is None or not (text.strip() or empty or isinstance(record.content, dict)):
            continue
        some = some or bool(text.strip())
        yield text
    if not some:
        raise ValueError(nothing_in(name, problems, "text"))


def nothing_in(name: str, problems: Problems, what: str) -> str:
    """The sentence for a source that has nothing to read."""
    left_out = f" ({problems})" if problems.count else ""
    return f"{name} is empty: expected at least one {what}{left_out}"


def _known_kind(file: str) -> str:
    kind = kind_of(file)
    if kind is None:
        raise ValueError(
            f"{file}: its suffix {plain_suffix(file)!r} is not one of {_quoted(SUFFIXES)} (each also with .gz or "
            f".xz); rename it or name its format, {_quoted(FORMATS)}"
        )
    return kind


def _all_records(
    name: str, kinds: dict[str, str], separator: str, problems: Problems, progress: Progress | None
) -> Iterator[Record]:
    what = f"reading {Path(name).name or name} (bytes)"
    sizes = {file: Path(file).stat().st_size for file in kinds if Path(file).is_file()}
    total = sum(sizes.values()) if len(sizes) == len(kinds) else 0
    before = 0
    for file, kind in kinds.items():

        def report(read: int, before: int = before) -> None:
            if progress:
                progress(what, before + read, total)

        with _opened(file) as (stream, position):
            yield from records_in(stream, name_of(file), kind, separator, problems, report, position)
        before += sizes.get(file, 0)


@contextlib.contextmanager
def _opened(file: str) -> Iterator[tuple[IO[bytes], Callable[[], int] | None]]:
    """The decompressed stream, and a function that tells how many bytes of the file on disk were read, if it is one."""
    if file == STANDARD_INPUT:
        yield sys.stdin.buffer, None
        return
    path = Path(file)
    with path.open("rb") as raw:
        unpacked: IO[bytes] = raw
        if path.suffix == ".gz":
            unpacked = gzip.open(raw)  # type: ignore[assignment]  # noqa: SIM115 (closed with raw)
        elif path.suffix == ".xz":
            unpacked = lzma.open(raw)  # noqa: SIM115
        yield unpacked, raw.tell if raw.seekable() else None  # a pipe cannot tell


def _chosen(fields: list[str], field: str | None) -> str | None:
    """The field to read: the one named, else a usual one, else the only one."""
    if field is not None:
        return field if field in fields else None
    usual = [name for name in DEFAULT_FIELDS if name in fields] or (fields if len(fields) == 1 else [])
    return usual[0] if usual else None


def _quoted(names: Iterable[str]) -> str:
    *most, last = (f'"{name}"' for name in names)
    return f"{', '.join(most)} or {last}"


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
