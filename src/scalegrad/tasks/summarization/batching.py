"""Batches by tokens, as the original counts them: examples × the longest summary among them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

SIZE = 140
_POOL = 50  # batches' worth of examples that are sorted together


class TokenBatches:
    """Index lists whose examples × longest target stay within `size`; an example longer than that comes alone.

    The examples are shuffled anew each epoch by `seed`, sorted by length within pools, cut into batches, and the
    batches shuffled: like goes with like, and no two epochs are alike.

    >>> batches = TokenBatches([3, 4, 4, 9, 20], size=12, seed=0)
    >>> sorted(sorted(batch) for batch in batches)  # 3 × 4, 1 × 9, and 20 alone
    [[0, 1, 2], [3], [4]]
    >>> len(batches)
    3
    """

    def __init__(self, lengths: Sequence[int], size: int = SIZE, seed: int = 0) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        if not len(lengths):
            raise ValueError("lengths must hold at least one length; there is none")
        self.lengths = list(lengths)
        self.size = size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Which shuffle to use: the same epoch gives the same batches."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches())

    def __len__(self) -> int:
        return len(self._batches())

    def _batches(self) -> list[list[int]]:
        dice = random.Random(f"{self.seed}/{self.epoch}")
        order = list(range(len(self.lengths)))
        dice.shuffle(order)
        mean = sum(self.lengths) / len(self.lengths)
        pool = max(1, int(_POOL * self.size / max(mean, 1)))
        batches = []
        for start in range(0, len(order), pool):
            batches += self._cut(sorted(order[start : start + pool], key=self.lengths.__getitem__))
        dice.shuffle(batches)
        return batches

    def _cut(self, order: list[int]) -> list[list[int]]:
        """Rising lengths: the last example is the longest of its batch."""
        batches: list[list[int]] = []
        for index in order:
            if batches and (len(batches[-1]) + 1) * self.lengths[index] <= self.size:
                batches[-1].append(index)
            else:
                batches.append([index])
        return batches
