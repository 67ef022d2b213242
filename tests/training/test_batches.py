"""Which example comes when, in one process and in several."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from scalegrad.training.batches import TrainingBatches, batches_in_epoch, shuffled


@given(st.integers(1, 40), st.integers(1, 7), st.integers(0, 5))
def test_an_epoch_has_every_example_once(count, size, seed):
    data, sampler = range(count), shuffled(size)
    epoch = batches_in_epoch(data, sampler, seed)
    batches = list(TrainingBatches(data, sampler, seed, 2 * epoch))
    assert epoch == -(-count // size)
    for part in (batches[:epoch], batches[epoch:]):
        assert sorted(chain.from_iterable(part)) == list(data)


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 4), st.integers(1, 12))
def test_processes_share_what_one_would_take(count, size, world, total):
    data, sampler = range(count), shuffled(size)
    alone = list(TrainingBatches(data, sampler, 3, total * world))
    shared = [list(TrainingBatches(data, sampler, 3, total, rank, world)) for rank in range(world)]
    assert all(len(part) == total for part in shared)
    assert [batch for turn in zip(*shared, strict=True) for batch in turn] == alone


def test_seeds_and_epochs_differ():
    data, sampler = range(50), shuffled(50)
    orders = [tuple(batch) for seed in (0, 1) for batch in TrainingBatches(data, sampler, seed, 3)]
    assert len(set(orders)) == 6
