"""Batches that become smaller where they do not fit."""

import pytest

from scalegrad.decoding.memory import in_batches


def test_running_out_of_memory_halves_the_batches_from_there_on():
    tried, told = [], []

    def work(places):
        tried.append((places.start, places.stop))
        if places.start >= 4 and places.stop - places.start > 1:
            raise MemoryError
        return places.start

    assert in_batches(7, 4, work, lambda done, total: told.append((done, total))) == [0, 4, 5, 6]
    assert tried == [(0, 4), (4, 7), (4, 6), (4, 5), (5, 6), (6, 7)]
    assert told == [(4, 7), (5, 7), (6, 7), (7, 7)]


def test_what_does_not_fit_alone_and_other_errors_come_through():
    def work(places):
        raise MemoryError if places.start == 0 else ValueError("bad")

    with pytest.raises(MemoryError):
        in_batches(2, 2, work)
    with pytest.raises(ValueError, match="bad"):
        in_batches(2, 2, lambda places: work(slice(1, 2)))
    assert in_batches(0, 2, work) == []
