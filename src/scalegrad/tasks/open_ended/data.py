"""From files, folders, standard input, embedded texts and hub data sets to the sequences a causal model learns from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from scalegrad.data import encode_corpus, wikitext2, wikitext103
from scalegrad.data.blocks import tokenizer_checksum
from scalegrad.data.readers import (
    STANDARD_INPUT,
    SUFFIXES,
    Latest,
    file_identity,
    files_of,
    kind_of,
    nothing_in,
    read_records,
    text_of,
)
from scalegrad.data.records import Problems, Record
from scalegrad.decoding import start_ids
from scalegrad.extras import need
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.config import Fields
from scalegrad.tasks.open_ended.examples import Examples, Ids, Pair, encode_pairs, encode_texts, room_in

EMBEDDED: dict[str, Callable[[], str]] = {
    "wikitext-2": wikitext2,
    "wikitext-2:prose": lambda: _without_headings(wikitext2()),
    "wikitext-103:valid": lambda: wikitext103("valid"),
    "wikitext-103:test": lambda: wikitext103("test"),
}
SOURCES = f"{', '.join(EMBEDDED)}, a file, a folder, -, or a hub data set: NAME, NAME:SPLIT, NAME:CONFIG:SPLIT"
PROTOCOLS = ("plain", "paper")
# What the runs of a sweep in one process train and validate on is read and encoded once.
_EXAMPLES: Latest[tuple[Examples, Problems]] = Latest(2)


def read_examples(
    sources: Sequence[str],
    tokenizer: Any,
    *,
    length: int = 300,
    fields: Fields | None = None,
    protocol: str = "plain",
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> Examples:
    """The sequences of all `sources` together, each of `length` tokens (300 in the paper).

    - a .txt file is one text, a .jsonl or .csv a text a record (`fields`), each also .gz or .xz; a folder is all such
      files in it, or what `datasets` finds in its .parquet files; "-" is standard input, JSONL where fields are named
      and else one text; other names are data sets of the hub;
    - texts follow each other, each with the tokenizer's end symbol after it, and are cut every `length` tokens;
    - records with a prompt and a completion become a sequence each, of which the completion is to be predicted
      (`Examples.of_pairs` says what happens to one that is too long);
    - each sequence begins with the tokenizer's start symbol, where it puts one before a text (`start_ids`);
    - "wikitext-2" and "wikitext-103:valid" are embedded. They, and with `protocol="paper"` every text, are encoded as
      the paper does (a space before every line); otherwise a text is encoded as it is.

    A bad record raises a ValueError that names it, unless `problems` skips and counts it.
    """
    start = start_ids(tokenizer)
    room_in(length, start)
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be {' or '.join(PROTOCOLS)}, not {protocol!r}")
    if not sources:
        raise ValueError(f"data: none was named; it may be {SOURCES}")
    problems = Problems() if problems is None else problems
    reading = _Reading(fields or Fields(), Problems(problems.skip), progress)
    key = _key(sources, tokenizer, (start, length, reading.fields, protocol, problems.skip))
    examples, bad = _EXAMPLES.get(
        key, lambda: (_encode(sources, reading, tokenizer, length, protocol), reading.problems)
    )
    problems.include(bad)
    return examples


def _encode(sources: Sequence[str], reading: _Reading, tokenizer: Any, length: int, protocol: str) -> Examples:
    parts = [part for source in sources for part in reading.parts(source)]
    pairs = [part for part in parts if isinstance(part, _Pairs)]
    if pairs and len(pairs) < len(parts):
        raise ValueError("data: some of it has prompts and completions and some has not; train on one kind")
    start = start_ids(tokenizer)
    if pairs:
        rows = (row for part in pairs for row in encode_pairs(part.rows, tokenizer))
        examples = Examples.of_pairs(rows, length, start)
    else:
        ids = [part.encoded(tokenizer, protocol, reading.progress) for part in parts if isinstance(part, _Texts)]
        examples = Examples.cut(np.concatenate(ids), length, start)
    if not len(examples):
        raise ValueError(f"data: {nothing_in(', '.join(sources), reading.problems, 'text to learn from')}")
    return examples


def _key(sources: Sequence[str], tokenizer: Any, options: tuple[Hashable, ...]) -> Hashable:
    """What the sequences depend on, files by their size and date; None where a tokenizer cannot be compared."""
    identity = tokenizer_checksum(tokenizer)
    return identity and (tuple(map(_identity, sources)), identity, tokenizer.eos_token_id, options)


def _identity(source: str) -> Hashable:
    if source == STANDARD_INPUT:
        return source, id(sys.stdin)  # it can be read once
    if source in EMBEDDED or not _is_place(source):
        return source
    path = Path(source).expanduser()
    return tuple(file_identity(file) for file in (sorted(path.rglob("*")) if path.is_dir() else [path]))


@dataclass(frozen=True)
class _Texts:
    """Texts of one source."""

    name: str
    texts: Iterable[str]
    paper: bool = False  # a corpus to be encoded by the paper's protocol

    def encoded(self, tokenizer: Any, protocol: str, progress: Progress | None) -> Ids:
        if self.paper or protocol == "paper":
            # Data sets keep a blank line, " \n" in the corpus, as an empty record.
            lines = (text if text.endswith("\n") else f"{text or ' '}\n" for text in self.texts)
            return encode_corpus("".join(lines), tokenizer, progress)
        return encode_texts(self.texts, tokenizer, f"tokenising {self.name} (characters)", progress)


@dataclass(frozen=True)
class _Pairs:
    """Prompts and completions of one source."""

    rows: Iterable[Pair]


@dataclass(frozen=True)
class _Reading:
    """How sources are read: which fields of a record, what of bad ones, and who is told how far it is."""

    fields: Fields
    problems: Problems
    progress: Progress | None

    def parts(self, source: str) -> Iterator[_Texts | _Pairs]:
        """The texts or pairs of each file of a source; what can be known of them early is checked now."""
        path = Path(source).expanduser()
        if source in EMBEDDED:
            yield _Texts(source, [EMBEDDED[source]()], paper=True)
        elif path.is_dir() and not _has_files(path):
            if not list(path.rglob("*.parquet")):
                known = f"{', '.join(SUFFIXES)} (or .gz, .xz) or .parquet"
                raise ValueError(f"data: {source} has no file ending in {known}")
            yield self._table(_hub(str(path), []), source)
        elif _is_place(source):
            yield from self._files(source)
        else:
            name, _, split = source.partition(":")
            yield self._table(_hub(name, split.split(":") if split else []), source)

    def _files(self, source: str) -> Iterator[_Texts | _Pairs]:
        files, before = files_of(source), 0
        sizes = [Path(file).stat().st_size if Path(file).is_file() else 0 for file in files]
        for file, size in zip(files, sizes, strict=True):
            within = _within(self.progress, f"reading {Path(source).name} (bytes)", before, sum(sizes))
            yield replace(self, progress=within)._file(file)
            before += size

    def _file(self, file: str) -> _Texts | _Pairs:
        kind = "jsonl" if file == STANDARD_INPUT and self.fields != Fields() else kind_of(file)
        records = read_records(file, format=kind, problems=self.problems, progress=self.progress)
        name = Path(file).name
        if kind == "txt":
            return _Texts(name, _joined(records))
        if file == STANDARD_INPUT:  # it can be read once
            first = next(records, None)
            return self._records(first, chain([first] if first else [], records), name)
        # Opened once more for its first record: a folder may hold more files than may be open at a time.
        first = next(read_records(file, format=kind, problems=Problems(self.problems.skip)), None)
        return self._records(first, records, name)

    def _records(self, first: Record | None, records: Iterable[Record], name: str) -> _Texts | _Pairs:
        """Pairs, where the fields of prompt and completion are named or the first record has the usual ones."""
        content = first.content if first else ""
        prompt, completion = self.fields.prompt_field or "prompt", self.fields.completion_field or "completion"
        both = isinstance(content, dict) and {prompt, completion} <= content.keys()
        if self.fields.prompt_field is not None or (self.fields.field is None and both):
            return _Pairs(self._pairs(records, prompt, completion))
        texts = (text_of(record, self.fields.field, self.problems) for record in records)
        return _Texts(name, (text for text in texts if text is not None))

    def _pairs(self, records: Iterable[Record], prompt: str, completion: str) -> Iterator[Pair]:
        for record in records:
            first = text_of(record, prompt, self.problems)
            second = None if first is None else text_of(record, completion, self.problems)
            if first is not None and second is not None:
                yield first, second

    def _table(self, table: Any, source: str) -> _Texts | _Pairs:
        """A data set, whose columns may hold anything."""

        def records() -> Iterator[Record]:
            for number, row in enumerate(table, start=1):
                if self.progress and (number % 256 == 0 or number == len(table)):
                    self.progress(f"reading {source} (records)", number, len(table))
                yield Record(dict(row), f"data: {source}", number, "record")

        return self._records(next(records(), None), records(), source)


def _within(progress: Progress | None, what: str, before: int, total: int) -> Progress | None:
    """`progress` of one file as part of all files of a source."""
    return None if progress is None else lambda _, done, __: progress(what, before + done, total)


def _has_files(folder: Path) -> bool:
    return any(kind_of(file) for file in folder.rglob("*") if file.is_file())


def _is_place(source: str) -> bool:
    """Whether a source is, or was meant as, a file or folder: a hub name has no suffix and no leading dot or slash."""
    path = Path(source).expanduser()
    meant = source.startswith((".", "/", "~")) or path.suffix in (*SUFFIXES, ".gz", ".xz")
    return meant or source == STANDARD_INPUT or path.exists()


def _joined(records: Iterable[Record]) -> Iterator[str]:
    """The lines of a file as one text; none where it is blank."""
    text = "".join(f"{record.content}\n" for record in records)
    if text.strip():
        yield text


def check_sources(sources: Iterable[str]) -> None:
    """Refuse files and folders that are not there, before anything else is read."""
    for source in sources:
        known = source == STANDARD_INPUT or source in EMBEDDED or not _is_place(source)
        if not known and not Path(source).expanduser().exists():
            raise FileNotFoundError(f"data: there is no file or folder {source}; it may be {SOURCES}")


def _without_headings(wikitext: str) -> str:
    """The paragraphs of a WikiText: no titles, headings and blank lines.

    >>> _without_headings(" \\n = Bees = \\n \\n Bees fly . \\n")
    ' Bees fly . \\n'
    """
    lines = wikitext.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() and not line.startswith(" = "))


def _hub(name: str, rest: list[str]) -> Any:
    """A split of a data set that `datasets` loads: `rest` is [split] or [config, split]."""
    datasets = need("datasets", extra="train")
    if len(rest) > 2:
        raise ValueError(f"data: {name}:{':'.join(rest)} has more than a configuration and a split after its name")
    config, split = (rest[0], rest[1]) if len(rest) == 2 else (None, rest[0] if rest else "train")
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # the hub client raises what its many layers raise
        reason = " ".join(str(error).split("\n")[0].split())
        raise ValueError(
            f"data: {name} cannot be loaded as a data set ({type(error).__name__}: {reason}); it may be {SOURCES}"
        ) from None
