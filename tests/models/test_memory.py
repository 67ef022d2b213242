"""Batches that become smaller where they do not fit."""

import pytest
import torch

from scalegrad.models.memory import free_memory, in_batches


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


@pytest.mark.parametrize(("processes", "free", "expected"), [(1, 90, 90), (4, 90, 20), (4, 15, 15)])
def test_of_a_shared_gpu_no_more_is_free_than_a_process_may_take(monkeypatch, processes, free, expected):
    """100 bytes in all, 5 of them this process's already: a quarter leaves it 20, unless others took more."""
    for name, value in {
        "is_available": lambda: True,
        "get_per_process_memory_fraction": lambda device: 1 / processes,
        "mem_get_info": lambda device: (free, 100),
        "memory_allocated": lambda device: 5,
        "current_device": lambda: 0,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    assert free_memory(torch.device("cuda")) == expected
