"""What a causal model learns from: sequences of ids, of equal length or with a prompt that is no target."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from scalegrad.counts import counted
from scalegrad.runs.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

Ids: TypeAlias = NDArray[np.int32]
Whole: TypeAlias = NDArray[np.int64]


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
        room = room_in(length, start)
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
        room, ids = room_in(length, start), array("i")
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


def room_in(length: int, start: tuple[int, ...]) -> int:
    """Tokens that are left for the text of a sequence; a ValueError where they are too few."""
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


Item = TypeVar("Item")
Pair: TypeAlias = tuple[str, str]  # a prompt and its completion

_PIECE = 100_000  # characters of a long text given to the tokenizer at a time
_BATCH = 256  # texts given to it at a time …
_BATCH_CHARACTERS = 4_000_000  # … unless they are long: a report of progress comes after each batch


class _Piece(NamedTuple):
    """A part of a text: whether the text ends with it, and where in the text it ends."""

    text: str
    last: bool
    stop: int
    whole: int  # characters of the text


def encode_texts(texts: Iterable[str], tokenizer: Any, what: str, progress: Progress | None) -> Ids:
    """The ids of texts, one after another, each with the end symbol after it."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    parts = [np.empty(0, np.int32)]
    for few in _batches(_pieces(texts), lambda piece: len(piece.text)):
        rows = tokenizer([piece.text for piece in few], add_special_tokens=False)["input_ids"]
        for piece, ids in zip(few, rows, strict=True):
            parts.append(np.asarray([*ids, *end] if piece.last else ids, np.int32))
        if progress and few[-1].whole > _BATCH_CHARACTERS:  # of shorter texts the reading tells enough
            progress(what, few[-1].stop, few[-1].whole)
    return np.concatenate(parts)


def _pieces(texts: Iterable[str]) -> Iterator[_Piece]:
    """Texts, long ones cut at ends of lines."""
    for text in texts:
        start = 0
        while start < len(text):
            stop = text.find("\n", start + _PIECE) + 1 or len(text)
            yield _Piece(text[start:stop], stop == len(text), stop, len(text))
            start = stop


def encode_pairs(rows: Iterable[Pair], tokenizer: Any) -> Iterator[tuple[list[int], list[int]]]:
    """Ids of prompt and completion, the completion with the end symbol."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    for few in _batches(rows, lambda row: len(row[0]) + len(row[1])):
        prompts = tokenizer([prompt for prompt, _ in few], add_special_tokens=False)["input_ids"]
        completions = tokenizer([completion for _, completion in few], add_special_tokens=False)["input_ids"]
        for prompt, completion in zip(prompts, completions, strict=True):
            yield list(prompt), [*completion, *end]


def _batches(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """A few items at a time: `_BATCH` of them, or fewer that are long."""
    few: list[Item] = []
    size = 0
    for item in items:
        few.append(item)
        size += characters(item)
        if len(few) >= _BATCH or size >= _BATCH_CHARACTERS:
            yield few
            few, size = [], 0
    if few:
        yield few
