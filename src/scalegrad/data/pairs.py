"""Articles and their summaries, from what users bring: JSONL, CSV, `.story` files, a folder of splits, or the hub.

A record that cannot be used stops the reading, or is left out and counted (`Problems`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalegrad.data import readers
from scalegrad.data.readers import STANDARD_INPUT, files_of, name_of, nothing_in, plain_suffix, read_records
from scalegrad.data.records import Problems
from scalegrad.data.sentences import sentences
from scalegrad.extras import need

if TYPE_CHECKING:
    from scalegrad.runs.progress import Progress

SOURCE_FIELDS = ("article", "source", "document", "src", "text")
SUMMARY_FIELDS = ("highlights", "summary", "abstract", "tgt")  # one summary: a text, or a list of its sentences
REFERENCE_FIELDS = ("references", "target")  # several summaries: a list of texts
SPLITS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
HUB_NAMES = {"cnn_dailymail": ("abisee/cnn_dailymail", "3.0.0")}

SUFFIXES = (*readers.SUFFIXES, ".story")


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


def read_pairs(
    source: str | Path,
    *,
    summaries: bool = True,
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> list[Pair]:
    """The articles of a file, a folder (all files in it, at any depth) or "-" (JSONL on standard input), in order.

    - .jsonl: an object a line; .csv: a header and rows; .gz and .xz after either. The article is the first field there
      is of "article", "source", "document", "src", "text": a text or a list of sentences. The summary is "highlights",
      "summary", "abstract" or "tgt", a text (a line a sentence) or a list of its sentences; or "references" or
      "target", a list of several summaries. An "id" is kept.
    - .story: the article, then its `@highlight` lines. .txt: the whole file is one article.

    `summaries=False`: a record needs no summary. The first record that cannot be used raises a ValueError that names
    it, unless `problems` skips and counts such records.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "news.jsonl"
    >>> _ = path.write_text('{"article": "It rained. It poured.", "summary": "Rain."}\\n')
    >>> read_pairs(path)
    [Pair(id='line 1', source=('It rained.', 'It poured.'), references=('Rain.',))]
    """
    problems = Problems() if problems is None else problems
    pairs = [pair for file in files_of(source, SUFFIXES) for pair in _pairs_of(file, summaries, problems, progress)]
    if not pairs:
        raise ValueError(nothing_in(name_of(source), problems, "article and summary" if summaries else "article"))
    return pairs


def hub_pairs(name: str, split: str, problems: Problems | None = None) -> list[Pair]:
    """The pairs of a split of a data set of the hub, `NAME` or `NAME:CONFIG`; `problems` as for `read_pairs`."""
    datasets = need("datasets", extra="summarize")
    repository, config = HUB_NAMES.get(name) or (name.partition(":")[0], name.partition(":")[2] or None)
    try:
        loaded = datasets.load_dataset(repository, config)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"data: {name} is no file or folder here, and the hub does not give it ({reason})") from None
    keys = [key for key in SPLITS[split] if key in loaded]
    if not keys:
        raise ValueError(f"data: {name} has no {split} split; it has {', '.join(loaded)}")
    problems = Problems() if problems is None else problems
    rows = enumerate(loaded[keys[0]], start=1)
    pairs = [_pair(f"row {row}", content, f"{name}, {split}, row {row}", True, problems) for row, content in rows]
    usable = [pair for pair in pairs if pair]
    if not usable:
        raise ValueError(nothing_in(f"{name}, {split}", problems, "article and summary"))
    return usable


def split_files(folder: str | Path, split: str) -> list[Path]:
    """The files of a folder that hold `split`: those named train…, validation… (valid, val, dev) or test….

    A sub-folder of that name may hold files of any name. Several files of one split are read one after another.
    """
    names = "|".join(SPLITS[split])
    wanted = re.compile(rf"({names})([-_.].*)?", re.IGNORECASE)
    paths = [path for path in sorted(Path(folder).iterdir()) if wanted.fullmatch(path.name)]
    return [path for path in paths if path.is_dir() or plain_suffix(path) in SUFFIXES]


def _pairs_of(file: str, summaries: bool, problems: Problems, progress: Progress | None) -> Iterator[Pair]:
    suffix = plain_suffix(file)
    if suffix in (".story", ".txt"):
        record = next(read_records(file, format="txt", separator="file", problems=problems, progress=progress), None)
        whole = _story(Path(file).name.split(suffix)[0], str(record.content) if record else "")
        if pair := _checked(whole, file, summaries, problems):
            yield pair
        return
    if file != STANDARD_INPUT and suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{file}: its suffix {suffix!r} is not one of {known} (each also with .gz or .xz)")
    kind = "jsonl" if file == STANDARD_INPUT else None
    for item in read_records(file, format=kind, problems=problems, progress=progress):
        if pair := _pair(f"line {item.line}", item.content, item.place, summaries, problems):
            yield pair


def _story(name: str, text: str) -> Pair:
    article, *highlights = text.split("@highlight")
    return Pair(name, tuple(sentences(article)), _lines([highlight.strip() for highlight in highlights]))


def _pair(name: str, content: Mapping[str, Any] | str, place: str, summaries: bool, problems: Problems) -> Pair | None:
    """The article and summaries of a record called `name`, or None if it is bad and skipped."""
    if isinstance(content, str):
        content = {"text": content}
    try:
        source = _field(content, SOURCE_FIELDS, _sentences)
        references = _field(content, REFERENCE_FIELDS, _references)
        if references is None:
            references = _field(content, SUMMARY_FIELDS, lambda value: _lines(_items(value)))
    except TypeError as error:
        problems.add(str(error), place)
        return None
    if source is None or (references is None and summaries):
        fields = SOURCE_FIELDS if source is None else (*SUMMARY_FIELDS, *REFERENCE_FIELDS)
        problems.add(f"no field {', '.join(fields)}", place)
        return None
    return _checked(Pair(str(content.get("id", name)), source, references or ()), place, summaries, problems)


def _checked(pair: Pair, place: str, summaries: bool, problems: Problems) -> Pair | None:
    missing = "no article" if not pair.source else "no summary" if summaries and not pair.references else None
    if missing is None:
        return pair
    problems.add(missing, place)
    return None


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
    lines = [" ".join(item.split()) for item in items if item.strip()]
    return ("\n".join(lines),) if lines else ()
