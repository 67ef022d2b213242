"""Which examples go into which batch: a pure function of the seed, so that a resumed run sees the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import islice
from typing import Any, TypeAlias

import torch

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
