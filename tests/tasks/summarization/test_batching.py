"""Token batches: within the size, each example once, the same for the same seed, like with like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.tasks.summarization.batching import token_batches


def examples(lengths):
    return [{"labels": [0] * length} for length in lengths]


def test_by_hand():
    """140 tokens: 4 × 35 fit and a fifth does not; 140 alone; 150, longer than the batch, alone too."""
    found = token_batches()(examples([35] * 5 + [140, 150]), 0)
    assert sorted(map(len, found)) == [1, 1, 1, 4]


def test_the_longest_counts_for_all():
    """Three of 40 and one of 50: 4 × 50 = 200 > 140, so the 50 cannot join the three, who fill 120."""
    found = token_batches(140)(examples([40, 40, 40, 50]), 3)
    assert sorted(sorted(batch) for batch in found) == [[0, 1, 2], [3]]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 90), st.integers(0, 5))
def test_every_example_once_and_never_too_large(lengths, size, seed):
    found = token_batches(size)(examples(lengths), seed)
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= size for batch in found)
    assert found == token_batches(size)(examples(lengths), seed)


def test_epochs_differ_and_batches_hold_like_lengths():
    lengths = [5, 20] * 200
    first, second = (token_batches(100)(examples(lengths), seed) for seed in (0, 1))
    assert first != second
    mixed = sum(len({lengths[i] for i in batch}) > 1 for batch in first)
    assert mixed <= len(first) // 10
    assert len(first) <= 200 * 5 // 100 + 200 * 20 // 100 + 4


def test_size_must_be_positive():
    with pytest.raises(ValueError, match="tokens must be at least 1, not 0"):
        token_batches(0)
