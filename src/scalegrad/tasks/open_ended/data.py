"""What a causal model learns from: any text as sequences of equal length, or prompts with their completions."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scalegrad.counts import counted
from scalegrad.data import encode_corpus, read_texts, wikitext2, wikitext103
from scalegrad.decoding import start_ids
from scalegrad.extras import need
from scalegrad.tasks.open_ended.config import Fields

if TYPE_CHECKING:
    from torch import Tensor

Ids: TypeAlias = NDArray[np.int32]
Whole: TypeAlias = NDArray[np.int64]
Pair: TypeAlias = tuple[str, str]  # a prompt and its completion

EMBEDDED: dict[str, Callable[[], str]] = {
    "wikitext-2": wikitext2,
    "wikitext-2:prose": lambda: _without_headings(wikitext2()),
    "wikitext-103:valid": lambda: wikitext103("valid"),
    "wikitext-103:test": lambda: wikitext103("test"),
}
SOURCES = f"{', '.join(EMBEDDED)}, a file, a folder, or a hub data set: NAME, NAME:SPLIT, NAME:CONFIG:SPLIT"
PROTOCOLS = ("plain", "paper")
_SUFFIXES = (".txt", ".jsonl", ".ndjson", ".csv")
_PIECE = 100_000  # characters of a long text given to the tokenizer at a time
_BATCH = 256  # texts given to it at a time


@dataclass(frozen=True)
class Reading:
    """What became of records with a prompt and a completion: how many were read, cut and left out.

    >>> print(Reading(190, length=64, completions=12, longest=412).sentence())
    190 records: no prompt and 12 completions were cut to fit into 64 tokens; the longest record has 412 tokens
    """

    records: int
    length: int  # the most tokens in a sequence
    prompts: int = 0  # that lost their beginning
    completions: int = 0  # that lost their end
    left_out: int = 0  # records with nothing to predict
    longest: int = 0  # tokens of the longest record, before it was cut

    def sentence(self) -> str:
        prompts = counted(self.prompts, "prompt") if self.prompts else "no prompt"
        completions = counted(self.completions, "completion") if self.completions else "no completion"
        left_out = f", {counted(self.left_out, 'record')} with nothing to predict left out" if self.left_out else ""
        return (
            f"{counted(self.records, 'record')}: {prompts} and {completions} were cut to fit into "
            f"{counted(self.length, 'token')}{left_out}; the longest record has {counted(self.longest, 'token')}"
        )


@dataclass(frozen=True, eq=False)
class Examples:
    """Sequences of ids, each with a number of tokens at its start (its prompt) that are no targets.

    The ids of `start` are read before every sequence and are no targets either. `reading` is there where the records
    had prompts.

    >>> examples = Examples.cut(np.arange(7, dtype=np.int32), length=3)
    >>> len(examples), examples[1]["input_ids"].tolist()
    (2, [3, 4, 5])
    """

    ids: Ids  # all sequences, one after another
    starts: Whole  # [N]
    lengths: Whole  # [N]
    prompts: Whole  # [N]
    start: tuple[int, ...] = ()
    reading: Reading | None = None

    @staticmethod
    def cut(ids: Ids, length: int, start: tuple[int, ...] = ()) -> Examples:
        """`ids` in sequences of `length`, `start` included; an incomplete last one is dropped unless it is the only."""
        room = _room(length, start)
        starts = np.arange(0, len(ids) - room + 1, room)
        if not len(starts) and len(ids) > 1:
            starts, room = np.zeros(1, np.int64), len(ids)
        return Examples(ids, starts, np.full(len(starts), room), np.zeros(len(starts), np.int64), start)

    @staticmethod
    def of_pairs(
        rows: Iterable[tuple[Sequence[int], Sequence[int]]], length: int, start: tuple[int, ...] = ()
    ) -> Examples:
        """Prompt and completion as one sequence of at most `length`, `start` included.

        A pair that is too long loses the beginning of its prompt until the prompt fills half of the sequence; then the
        completion loses its end. So no completion is learnt without the end of its prompt.
        """
        room, ids = _room(length, start), array("i")
        lengths, prompts = [], []
        records = cut_prompts = cut_completions = longest = 0
        for prompt, completion in rows:
            size = len(start) + len(prompt) + len(completion)
            records, longest = records + 1, max(longest, size)
            if not completion or size < 2:
                continue  # nothing to predict
            before = min(len(prompt), max(room - len(completion), room // 2))
            after = min(len(completion), room - before)
            cut_prompts += before < len(prompt)
            cut_completions += after < len(completion)
            ids.extend(prompt[len(prompt) - before :])
            ids.extend(completion[:after])
            lengths.append(before + after)
            prompts.append(before)
        sizes = np.array(lengths, np.int64)
        reading = Reading(records, length, cut_prompts, cut_completions, records - len(lengths), longest)
        starts = np.cumsum(sizes) - sizes
        return Examples(np.array(ids, np.int32), starts, sizes, np.array(prompts, np.int64), start, reading)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        import torch

        start, size = int(self.starts[index]), int(self.lengths[index])
        ids = torch.tensor([*self.start, *self.ids[start : start + size].tolist()])
        labels = ids.clone()
        labels[: len(self.start) + int(self.prompts[index])] = -100
        return {"input_ids": ids, "labels": labels}

    @property
    def targets(self) -> int:
        """How many tokens there are to predict."""
        return int((self.lengths - np.maximum(self.prompts, 0 if self.start else 1)).sum())

    @property
    def mean_length(self) -> float:
        """Tokens in a sequence, on average."""
        return float(self.lengths.mean()) + len(self.start)

    def sentence(self) -> str:
        """One line on what was read."""
        if self.reading is not None:
            return self.reading.sentence()
        tokens, used = len(self.ids), int(self.lengths.sum())
        size = int(self.lengths[0]) + len(self.start)
        rest = f"; the {counted(tokens - used, 'token')} after the last one left out" if tokens > used else ""
        return f"{counted(tokens, 'token')} of text in {counted(len(self), 'sequence')} of {size:,}{rest}"

    def chosen(self, rows: Any) -> Examples:
        """Some of them."""
        return replace(self, starts=self.starts[rows], lengths=self.lengths[rows], prompts=self.prompts[rows])

    def spread(self, count: int) -> Examples:
        """`count` of them, evenly spread; all where there are no more.

        >>> Examples.cut(np.arange(20, dtype=np.int32), length=2).spread(3).starts.tolist()
        [0, 6, 12]
        """
        if count < 1:
            raise ValueError(f"validation_sequences must be at least 1, not {count}")
        return self if count >= len(self) else self.chosen(np.arange(count) * len(self) // count)

    def about(self) -> dict[str, Any]:
        """For a run's record: how many, and a checksum of all ids and of where the targets are."""
        digest = hashlib.blake2b(np.array(self.start, np.int64).tobytes(), digest_size=8)
        for start, size, prompt in zip(self.starts, self.lengths, self.prompts, strict=True):
            digest.update(np.array([size, prompt], np.int64).tobytes())
            digest.update(self.ids[start : start + size].tobytes())
        start = {"start": list(self.start)} if self.start else {}
        return {"sequences": len(self), "targets": self.targets, "checksum": digest.hexdigest(), **start}


def _room(length: int, start: tuple[int, ...]) -> int:
    """Tokens that are left for the text of a sequence."""
    least = len(start) + 2
    if length < least:
        raise ValueError(f"length must be at least {least} tokens, not {length}")
    return length - len(start)


def hold_out(examples: Examples, share: float = 0.05, most: int = 500) -> tuple[Examples, Examples]:
    """(the rest, every n-th sequence): the same ones whatever the seed, spread over the whole, `most` of them at most.

    >>> rest, held = hold_out(Examples.cut(np.arange(20, dtype=np.int32), length=2), share=0.2)
    >>> rest.starts.tolist(), held.starts.tolist()
    ([0, 2, 4, 6, 10, 12, 14, 16], [8, 18])
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, not {share!r}")
    if len(examples) < 2:
        raise ValueError("there is one sequence only, and none to hold out for validation: bring more text")
    every = min(max(round(1 / share), 2, -(-len(examples) // most)), len(examples))
    held = np.arange(len(examples)) % every == every - 1
    return examples.chosen(~held), examples.chosen(held)


def read_examples(
    sources: Sequence[str], tokenizer: Any, *, length: int = 300, fields: Fields | None = None, protocol: str = "plain"
) -> Examples:
    """The sequences of all `sources` together, each of `length` tokens (300 in the paper).

    - a .txt file is one text, a .jsonl or .csv a text a record (`fields`), each also .gz or .xz; a folder is all such
      files in it, or what `datasets` finds in its .parquet files; other names are data sets of the hub;
    - texts follow each other, each with the tokenizer's end symbol after it, and are cut every `length` tokens;
    - records with a prompt and a completion become a sequence each, of which the completion is to be predicted
      (`Examples.of_pairs` says what happens to one that is too long);
    - each sequence begins with the tokenizer's start symbol, where it puts one before a text (`start_ids`);
    - "wikitext-2" and "wikitext-103:valid" are embedded. They, and with `protocol="paper"` every text, are encoded as
      the paper does (a space before every line); otherwise a text is encoded as it is.
    """
    start = start_ids(tokenizer)
    _room(length, start)
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be {' or '.join(PROTOCOLS)}, not {protocol!r}")
    if not sources:
        raise ValueError(f"data: none was named; it may be {SOURCES}")
    found = [read for source in sources for read in _read(source, fields or Fields())]
    pairs = [item for item in found if isinstance(item, _Pairs)]
    if pairs and len(pairs) < len(found):
        raise ValueError("data: some of it has prompts and completions and some has not; train on one kind")
    if pairs:
        rows = (row for item in pairs for row in _encoded_pairs(item.rows, tokenizer))
        examples = Examples.of_pairs(rows, length, start)
    else:
        parts = [item.encoded(tokenizer, protocol) for item in found if isinstance(item, _Texts)]
        examples = Examples.cut(np.concatenate(parts), length, start)
    if not len(examples):
        raise ValueError(f"data: {', '.join(sources)} has no text to learn from")
    return examples


@dataclass(frozen=True)
class _Texts:
    """Texts of one source."""

    texts: Iterable[str]
    paper: bool = False  # a corpus to be encoded by the paper's protocol

    def encoded(self, tokenizer: Any, protocol: str) -> Ids:
        if self.paper or protocol == "paper":
            # Data sets keep a blank line, " \n" in the corpus, as an empty record.
            lines = (text if text.endswith("\n") else f"{text or ' '}\n" for text in self.texts)
            return encode_corpus("".join(lines), tokenizer)
        return _encoded(self.texts, tokenizer)


@dataclass(frozen=True)
class _Pairs:
    """Prompts and completions of one source."""

    rows: Iterable[Pair]


def _read(source: str, fields: Fields) -> Iterator[_Texts | _Pairs]:
    name, _, split = source.partition(":")
    path = Path(source).expanduser()
    if source in EMBEDDED:
        yield _Texts([EMBEDDED[source]()], paper=True)
    elif path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and _readable(file)]
        if not files and not list(path.rglob("*.parquet")):
            raise ValueError(f"data: {source} has no file ending in {', '.join(_SUFFIXES)} (or .gz, .xz) or .parquet")
        for file in files:
            yield _read_file(file, fields)
        if not files:
            yield _read_records(_hub(str(path), []), source, fields)
    elif _is_local(source):
        yield _read_file(path, fields)  # says so if it is not there
    else:
        yield _read_records(_hub(name, split.split(":") if split else []), source, fields)


def check_sources(sources: Iterable[str]) -> None:
    """Refuse files and folders that are not there, before anything else is read."""
    for source in sources:
        if source not in EMBEDDED and _is_local(source) and not Path(source).expanduser().exists():
            raise FileNotFoundError(f"data: there is no file or folder {source}; it may be {SOURCES}")


def _is_local(source: str) -> bool:
    """Whether a name is meant as a file or folder here, and not as a data set of the hub."""
    path = Path(source).expanduser()
    return path.exists() or source.startswith((".", "/", "~")) or path.suffix in (*_SUFFIXES, ".gz", ".xz")


def _without_headings(wikitext: str) -> str:
    """The paragraphs of a WikiText: no titles, headings and blank lines.

    >>> _without_headings(" \\n = Bees = \\n \\n Bees fly . \\n")
    ' Bees fly . \\n'
    """
    lines = wikitext.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() and not line.startswith(" = "))


def _readable(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz").removesuffix(".xz")).suffix in _SUFFIXES


def _read_file(path: Path, fields: Fields) -> _Texts | _Pairs:
    if Path(path.name.removesuffix(".gz").removesuffix(".xz")).suffix == ".txt":
        return _Texts(["".join(f"{line}\n" for line in read_texts(path))])
    if fields.prompt_field is not None:
        return _Pairs(_pairs(path, fields.prompt_field, fields.completion_field or ""))
    if fields.field is None and _has(path, "prompt") and _has(path, "completion"):
        return _Pairs(_pairs(path, "prompt", "completion"))
    return _Texts(read_texts(path, fields.field))


def _pairs(path: Path, prompt: str, completion: str) -> Iterator[Pair]:
    return zip(read_texts(path, prompt), read_texts(path, completion), strict=True)


def _has(path: Path, field: str) -> bool:
    try:
        next(read_texts(path, field))
    except ValueError:
        return False
    return True


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


def _read_records(table: Any, source: str, fields: Fields) -> _Texts | _Pairs:
    names = list(table.column_names)
    prompt, completion = fields.prompt_field or "prompt", fields.completion_field or "completion"
    if fields.prompt_field is not None or (fields.field is None and {"prompt", "completion"} <= set(names)):
        _check_column(names, prompt, source)
        _check_column(names, completion, source)
        return _Pairs(zip(_strings(table, prompt, source), _strings(table, completion, source), strict=True))
    text = fields.field or (names[0] if len(names) == 1 else "text")
    _check_column(names, text, source)
    return _Texts(_strings(table, text, source))


def _strings(table: Any, name: str, source: str) -> Iterator[str]:
    """A column of a data set, which may hold anything, as the texts it must hold."""
    for number, record in enumerate(table, start=1):
        value = record[name]
        if not isinstance(value, str):
            kind = "null" if value is None else f"of type {type(value).__name__}"
            raise ValueError(f"data: {source}, record {number}: field {name!r} is {kind}; expected a string")
        yield value


def _check_column(names: list[str], name: str, source: str) -> None:
    if name not in names:
        raise ValueError(f"data: {source} has no field {name!r}; its fields are {', '.join(map(repr, names))}")


def _encoded(texts: Iterable[str], tokenizer: Any) -> Ids:
    """The ids of texts, one after another, each with the end symbol after it."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    parts = [np.empty(0, np.int32)]
    for few in _batches(_pieces(texts)):
        rows = tokenizer([piece for piece, _ in few], add_special_tokens=False)["input_ids"]
        for (_, last), ids in zip(few, rows, strict=True):
            parts.append(np.asarray([*ids, *end] if last else ids, np.int32))
    return np.concatenate(parts)


def _pieces(texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Texts, long ones cut at ends of lines, and whether a text ends with the piece."""
    for text in texts:
        start = 0
        while start < len(text):
            stop = text.find("\n", start + _PIECE) + 1 or len(text)
            yield text[start:stop], stop == len(text)
            start = stop


def _encoded_pairs(rows: Iterable[Pair], tokenizer: Any) -> Iterator[tuple[list[int], list[int]]]:
    """Ids of prompt and completion, the completion with the end symbol."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    for few in _batches(rows):
        prompts = tokenizer([prompt for prompt, _ in few], add_special_tokens=False)["input_ids"]
        completions = tokenizer([completion for _, completion in few], add_special_tokens=False)["input_ids"]
        for prompt, completion in zip(prompts, completions, strict=True):
            yield list(prompt), [*completion, *end]


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(items)
    while few := list(islice(iterator, _BATCH)):
        yield few
