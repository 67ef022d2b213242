"""Batches by tokens, as the original counts them: examples × the longest labels among them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

TOKENS = 140
TARGET_TOKENS = 140  # the original cuts a summary there
_POOL = 50  # batches' worth of examples that are sorted together


def token_batches(tokens: int = TOKENS) -> Callable[[Sequence[Any], int], list[list[int]]]:
    """(examples, seed) → index lists whose examples × longest `labels` stay within `tokens`; a longer one comes alone.

    The examples are shuffled by the seed, sorted by length within pools, cut into batches, and the batches shuffled:
    like goes with like, and no two epochs are alike.

    >>> examples = [{"labels": [0] * length} for length in (3, 4, 4, 9, 20)]
    >>> sorted(sorted(batch) for batch in token_batches(12)(examples, 0))  # 3 × 4, 1 × 9, and 20 alone
    [[0, 1, 2], [3], [4]]
    """
    if tokens < 1:
        raise ValueError(f"tokens must be at least 1, not {tokens}")

    def batches(examples: Sequence[Any], seed: int) -> list[list[int]]:
        lengths = [len(example["labels"]) for example in examples]
        dice = random.Random(seed)
        order = list(range(len(lengths)))
        dice.shuffle(order)
        pool = max(1, _POOL * tokens * len(lengths) // max(sum(lengths), 1))
        found = []
        for start in range(0, len(order), pool):
            found += _cut(sorted(order[start : start + pool], key=lengths.__getitem__), lengths, tokens)
        dice.shuffle(found)
        return found

    return batches


def _cut(order: list[int], lengths: list[int], tokens: int) -> list[list[int]]:
    """Rising lengths: the last example is the longest of its batch."""
    batches: list[list[int]] = []
    for index in order:
        if batches and (len(batches[-1]) + 1) * lengths[index] <= tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
