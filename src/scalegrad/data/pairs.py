"""Articles and their summaries, from what users bring: JSONL, CSV, `.story` files, a folder of splits, or the hub.

What cannot be used is counted, with the first places it was found at, and said once; it is never passed over in
silence.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalegrad.counts import are, counted
from scalegrad.data.readers import opened
from scalegrad.data.sentences import sentences
from scalegrad.extras import need

SOURCE_FIELDS = ("article", "source", "document", "src", "text")
SUMMARY_FIELDS = ("highlights", "summary", "abstract", "tgt")  # one summary: a text, or a list of its sentences
REFERENCE_FIELDS = ("references", "target")  # several summaries: a list of texts
SPLITS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
HUB_NAMES = {"cnn_dailymail": ("abisee/cnn_dailymail", "3.0.0")}

_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".story", ".txt")
_LONGEST_FIELD = 8 * 2**20
_SHOWN = 3  # places named for each kind of problem


@dataclass(frozen=True)
class Pair:
    """An article as its sentences, and its reference summaries, a line for each of their sentences."""

    id: str
    source: tuple[str, ...]
    references: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The article in one piece."""
        return " ".join(self.source)


@dataclass(frozen=True)
class Record:
    """What stands at one place of a file: a pair, or what is wrong with it."""

    place: str
    pair: Pair | None
    problem: str | None = None  # its kind: "malformed", "without an article", "without a summary"
    detail: str = ""


@dataclass
class Problems:
    """How many records could not be used, and why.

    >>> problems = Problems()
    >>> problems.add("malformed", "line 3 (not JSON)"); problems.add("malformed", "line 9 (a list)")
    >>> problems.sentence("train.jsonl", 12)
    'train.jsonl: 2 of 12 records are left out: 2 malformed (line 3 (not JSON), line 9 (a list))'
    """

    kinds: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    def add(self, kind: str, place: str) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        shown = self.places.setdefault(kind, [])
        if len(shown) < _SHOWN:
            shown.append(place)

    def sentence(self, name: str, records: int) -> str:
        told = []
        for kind, count in self.kinds.items():
            more = ", …" if count > _SHOWN else ""
            told.append(f"{count} {kind} ({', '.join(self.places[kind])}{more})")
        return f"{name}: {self.total:,} of {counted(records, 'record')} {are(self.total)} left out: {'; '.join(told)}"


def read_records(path: str | Path, summaries: bool = True) -> Iterator[Record]:
    """Every record of a file, in order, those that cannot be used with what is wrong with them.

    - .jsonl: an object a line; .csv: a header and rows; .gz and .xz after either. The article is the first field there
      is of "article", "source", "document", "src", "text": a text or a list of sentences. The summary is "highlights",
      "summary", "abstract" or "tgt", a text (a line a sentence) or a list of its sentences; or "references" or
      "target", a list of several summaries. An "id" is kept.
    - .story: the article, then its `@highlight` lines; a folder of them. .txt: the whole file is one article.

    `summaries=False`: a record needs no summary.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix == ".story")
        if not files:
            raise ValueError(f"{path} is a folder without .story files; expected those, or a .jsonl or .csv file")
        for file in files:
            yield from read_records(file, summaries)
        return
    kind = _kind(path)
    with opened(path, str(path)) as (stream, _):
        if kind in (".story", ".txt"):
            text = stream.read().decode(errors="surrogateescape")
            read = _story if kind == ".story" else _article
            yield _checked(path.name, read(path.stem, text), summaries)
            return
        lines = (line.decode("utf-8-sig" if first else "utf-8", "surrogateescape") for first, line in _numbered(stream))
        found = _from_csv(lines) if kind == ".csv" else _from_jsonl(lines)
        for number, content in found:
            yield _record(f"line {number}", content, summaries)


def read_pairs(path: str | Path) -> list[Pair]:
    """The usable pairs of a file (see `read_records`); a warning counts the others.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "news.jsonl"
    >>> _ = path.write_text('{"article": "It rained. It poured.", "summary": "Rain."}\\n')
    >>> read_pairs(path)
    [Pair(id='line 1', source=('It rained.', 'It poured.'), references=('Rain.',))]
    """
    return _usable(str(path), read_records(path))


def hub_pairs(name: str, split: str) -> list[Pair]:
    """The pairs of a split of a data set of the hub, `NAME` or `NAME:CONFIG`; a warning counts what cannot be used."""
    datasets = need("datasets", extra="summarize")
    repository, config = HUB_NAMES.get(name) or (name.partition(":")[0], name.partition(":")[2] or None)
    try:
        loaded = datasets.load_dataset(repository, config)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"data: {name} is no file or folder here, and the hub does not give it ({reason})") from None
    found = [key for key in SPLITS[split] if key in loaded]
    if not found:
        raise ValueError(f"data: {name} has no {split} split; it has {', '.join(loaded)}")
    rows = enumerate(loaded[found[0]], start=1)
    return _usable(f"{name}, {split}", (_record(f"row {number}", row, True) for number, row in rows))


def split_files(folder: str | Path, split: str) -> list[Path]:
    """The files of a folder that hold `split`: those named train…, validation… (valid, val, dev) or test….

    A sub-folder of that name may hold `.story` files. Several files of one split are read one after another.
    """
    names = "|".join(SPLITS[split])
    wanted = re.compile(rf"({names})([-_.].*)?", re.IGNORECASE)
    return [path for path in sorted(Path(folder).iterdir()) if wanted.fullmatch(path.name) and _readable(path)]


def _usable(name: str, records: Iterable[Record]) -> list[Pair]:
    problems, pairs, seen = Problems(), [], 0
    for record in records:
        seen += 1
        if record.pair is not None and record.problem is None:
            pairs.append(record.pair)
        else:
            problems.add(str(record.problem), record.place + (f": {record.detail}" if record.detail else ""))
    if not pairs:
        raise ValueError(problems.sentence(name, seen) if seen else f"{name} is empty: expected articles and summaries")
    if problems.total:
        warnings.warn(problems.sentence(name, seen), stacklevel=3)
    return pairs


def _readable(path: Path) -> bool:
    return path.is_dir() or _suffix(path) in _SUFFIXES


def _suffix(path: Path) -> str:
    return path.with_suffix("").suffix if path.suffix in (".gz", ".xz") else path.suffix


def _kind(path: Path) -> str:
    suffix = _suffix(path)
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise ValueError(f"{path}: its suffix {suffix!r} is not one of {known} (each also with .gz or .xz)")
    return ".jsonl" if suffix == ".ndjson" else suffix


def _numbered(stream: Any) -> Iterator[tuple[bool, bytes]]:
    for number, line in enumerate(stream):
        yield number == 0, line


def _from_jsonl(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    """(line, object), or (line, what is wrong with it)."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
            yield number, "not JSON"
        else:
            yield number, content if isinstance(content, dict) else f"{type(content).__name__}, not an object"


def _from_csv(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    rows = csv.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield rows.line_num, f"broken CSV, {error}"
            continue
        if header is None:
            header = row
        elif row and len(row) != len(header):
            yield rows.line_num, f"{counted(len(row), 'column')}, not {len(header)}"
        elif row:
            yield rows.line_num, dict(zip(header, row, strict=True))


def _story(name: str, text: str) -> Pair:
    article, *highlights = text.split("@highlight")
    return Pair(name, tuple(sentences(article)), _lines([highlight.strip() for highlight in highlights]))


def _article(name: str, text: str) -> Pair:
    return Pair(name, tuple(sentences(text)))


def _record(place: str, content: Mapping[str, Any] | str, summaries: bool) -> Record:
    if isinstance(content, str):
        return Record(place, None, "malformed", content)
    try:
        source = _field(content, SOURCE_FIELDS, _sentences)
        references = _field(content, REFERENCE_FIELDS, _references)
        if references is None:
            references = _field(content, SUMMARY_FIELDS, lambda value: _lines(_items(value)))
    except TypeError as error:
        return Record(place, None, "malformed", str(error))
    if source is None:
        return Record(place, None, "malformed", f"no field {', '.join(SOURCE_FIELDS)}")
    if references is None and summaries:
        return Record(place, None, "malformed", f"no field {', '.join((*SUMMARY_FIELDS, *REFERENCE_FIELDS))}")
    return _checked(place, Pair(str(content.get("id", place)), source, references or ()), summaries)


def _checked(place: str, pair: Pair, summaries: bool) -> Record:
    try:
        "".join((*pair.source, *pair.references)).encode()
    except UnicodeEncodeError:
        return Record(place, None, "malformed", "not UTF-8")
    if not pair.source:
        return Record(place, pair, "without an article")
    if summaries and not pair.references:
        return Record(place, pair, "without a summary")
    return Record(place, pair)


def _field(
    content: Mapping[str, Any], names: tuple[str, ...], read: Callable[[Any], tuple[str, ...]]
) -> tuple[str, ...] | None:
    for name in names:
        if content.get(name) is not None:
            try:
                return read(content[name])
            except TypeError as error:
                raise TypeError(f"field {name!r} {error}") from None
    return None


def _sentences(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(sentences(value))
    return tuple(item.strip() for item in _items(value) if item.strip())


def _items(value: Any) -> list[str]:
    """A text as its lines; a list of texts, or of lists of words, as texts."""
    if isinstance(value, str):
        return value.splitlines()
    if not isinstance(value, list):
        raise TypeError(f"is {type(value).__name__}, not a text or a list of sentences")
    items = [" ".join(map(str, item)) if isinstance(item, list) else item for item in value]
    if not all(isinstance(item, str) for item in items):
        raise TypeError("holds something that is no text")
    return items


def _references(value: Any) -> tuple[str, ...]:
    """Several summaries; a single text is one."""
    texts = [value] if isinstance(value, str) else _items(value)
    return tuple(summary for text in texts for summary in _lines(text.splitlines()))


def _lines(items: list[str]) -> tuple[str, ...]:
    """One summary, a line for each sentence; none where nothing is said."""
    kept = [" ".join(item.split()) for item in items if item.strip()]
    return ("\n".join(kept),) if kept else ()
