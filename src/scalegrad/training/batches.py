"""Which examples go into which batch: a pure function of the seed, so that a resumed run sees the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

import torch
from torch import Tensor

Batch: TypeAlias = list[int]
BatchSampler: TypeAlias = Callable[[Any, int], Iterable[Batch]]
"""(data set, seed of the epoch) → the batches of one epoch, as lists of indices."""


def shuffled(size: int) -> BatchSampler:
    """All examples in random order, cut into batches of `size`; the last one may be smaller.

    >>> batches = list(shuffled(2)(range(5), 0))
    >>> [len(batch) for batch in batches], sorted(sum(batches, []))
    ([2, 2, 1], [0, 1, 2, 3, 4])
    """

    def batches(data: Sized, seed: int) -> Iterator[Batch]:
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed)).tolist()
        for start in range(0, len(order), size):
            yield order[start : start + size]

    return batches


class TrainingBatches:
    """The batches of one process for a whole run: epoch after epoch, each with a seed of its own.

    Process `rank` of `world` takes every `world`-th batch, so that one step of all of them together takes what one
    process with `accumulation` times `world` would take.
    """

    def __init__(self, data: Any, sampler: BatchSampler, seed: int, total: int, rank: int = 0, world: int = 1) -> None:
        self.data, self.sampler, self.seed = data, sampler, seed
        self.total, self.rank, self.world = total, rank, world

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Batch]:
        return islice(self._endless(), self.rank, self.rank + self.total * self.world, self.world)

    def _endless(self) -> Iterator[Batch]:
        epoch = 0
        while True:
            # Seeds of one run's epochs must not be those of another run's: a seed takes a block of a million.
            yield from self.sampler(self.data, self.seed * 1_000_000 + epoch)
            epoch += 1


def batches_in_epoch(data: Any, sampler: BatchSampler, seed: int) -> int:
    """How many batches the first epoch has."""
    count = sum(1 for _ in sampler(data, seed * 1_000_000))
    if not count:
        raise ValueError("train: there are no examples to train on")
    return count


_FILL = {"labels": -100, "attention_mask": 0, "decoder_attention_mask": 0, "token_type_ids": 0}


@dataclass(frozen=True)
class Pad:
    """Pad every field to the longest of the batch: labels with -100, ids with `pad_id`, real numbers with 0.

    An attention mask is added where `input_ids` need padding and the examples bring none. `left`: pad at the beginning.
    `masks` names fields that always get a mask, and it; `fill` what else to pad a field with.

    >>> batch = Pad(0)([{"input_ids": [5, 6, 7], "labels": [5, 6, 7]}, {"input_ids": [8], "labels": [8]}])
    >>> batch["labels"].tolist(), batch["attention_mask"].tolist()
    ([[5, 6, 7], [8, -100, -100]], [[1, 1, 1], [1, 0, 0]])
    """

    pad_id: int = 0
    left: bool = False
    masks: Mapping[str, str] = field(default_factory=dict)
    fill: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        rows = {name: [_whole(example[name]) for example in examples] for name in examples[0]}
        masks = dict(self.masks)
        if len({len(row) for row in rows.get("input_ids", [])}) > 1:
            masks["input_ids"] = "attention_mask"
        for name, mask in masks.items():
            rows.setdefault(mask, [torch.ones(len(row), dtype=torch.long) for row in rows[name]])
        filled = {**_FILL, **dict.fromkeys(masks.values(), 0), **self.fill}
        return {name: self._padded(row, filled.get(name, self.pad_id)) for name, row in rows.items()}

    def _padded(self, rows: list[Tensor], fill: int) -> Tensor:
        if rows[0].dim() == 0:
            return torch.stack(rows)
        value, side = 0 if rows[0].is_floating_point() else fill, "left" if self.left else "right"
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value, padding_side=side)


def _whole(value: Any) -> Tensor:
    """As a tensor; whole numbers as the long ones that models want."""
    tensor = torch.as_tensor(value)
    return tensor.long() if tensor.dtype in (torch.int32, torch.int16) else tensor
