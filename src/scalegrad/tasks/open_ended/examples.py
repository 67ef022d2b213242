"""What a causal model learns from: sequences of ids, of equal length or with a prompt that is no target."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scalegrad.counts import counted

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
