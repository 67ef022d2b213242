"""Medians, spreads and ratios from scripted times; a wrong or broken contender gets no speed and stops nobody."""

import math

import pytest

from benchmarks.clock import Contender, CpuClock
from benchmarks.runner import Measurement, Skipped, Unavailable, WrongResult, compare


class Script:
    """A clock that tells the times it is given, the first of which is the warm-up's."""

    device = "cpu"

    def __init__(self, times, peaks=None):
        self.times = {name: iter(values) for name, values in times.items()}
        self.peaks = peaks or {}
        self.order = []

    def seconds(self, contender):
        contender.run(*contender.prepare())
        self.order.append(contender.name)
        return next(self.times[contender.name])

    def peak(self, contender):
        return self.peaks.get(contender.name)

    def settle(self):
        pass


def contenders(*names):
    return [Contender(name, lambda: None) for name in names]


def test_median_spread_and_ratios():
    clock = Script({"a": [9, 2, 1, 3, 4, 5], "b": [9, 6, 6, 6, 6, 6]}, {"a": 100, "b": 25})
    a, b = compare(contenders("a", "b"), clock, rounds=5, patience=1e9, floor=1.5)
    # Quartiles of 1…5, as statistics.quantiles places them: 1.5 and 4.5.
    assert a == Measurement("a", 3, 0.5, 100, 1.0, 1.0, 2.0, None)
    assert b == Measurement("b", 6, 0.0, 25, 2.0, 0.25, 4.0, None)


def test_turns_are_interleaved_and_nobody_always_follows_the_same():
    clock = Script({name: [1] * 99 for name in "abc"})
    compare(contenders("a", "b", "c"), clock, rounds=40, patience=1e9)
    warm, *rounds = ["".join(clock.order[i : i + 3]) for i in range(0, len(clock.order), 3)]
    assert warm == "abc"
    assert all(sorted(turn) == ["a", "b", "c"] for turn in rounds)
    assert len(set(rounds)) == 6


def test_a_slow_one_runs_as_often_as_patience_allows_but_twice():
    clock = Script({"fast": [1] * 99, "slow": [4] * 99, "slowest": [50] * 99})
    compare(contenders("fast", "slow", "slowest"), clock, rounds=7, patience=12)
    assert {name: clock.order.count(name) - 1 for name in ("fast", "slow", "slowest")} == {
        "fast": 7,
        "slow": 3,
        "slowest": 2,
    }


def test_a_red_check_suppresses_the_speed_of_that_one_alone():
    def check(name, result):
        if name == "wrong":
            raise WrongResult("wrong: loss 0.4, bound 0.1", 4.0)
        return 0.25

    clock = Script({"right": [1] * 9, "wrong": [1e-9] * 9})
    right, wrong = compare(contenders("right", "wrong"), clock, check=check, rounds=3)
    assert isinstance(right, Measurement)
    assert right.error == 0.25
    assert wrong == Skipped("wrong", "wrong: loss 0.4, bound 0.1", 4.0)
    assert "wrong" not in clock.order  # it was never timed


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Unavailable("liger-kernel is not installed"), "liger-kernel is not installed"),
        (RuntimeError("CUDA error: an illegal access\nmore lines"), "RuntimeError: CUDA error: an illegal access"),
        (MemoryError(), "MemoryError: "),
    ],
)
def test_one_that_fails_is_skipped_and_the_ratios_to_it_are_missing(failure, said):
    def fail():
        raise failure

    rows = compare([Contender("a", fail), *contenders("b")], Script({"b": [2] * 9}), rounds=3, floor=1.0)
    assert rows[0] == Skipped("a", said)
    assert rows[1] == Measurement("b", 2, 0.0, None, None, None, 2.0, None)


def test_failing_in_a_late_round_is_failing():
    calls = []

    def run():
        calls.append(1)
        if len(calls) == 4:
            raise RuntimeError("out of memory")

    (row,) = compare([Contender("a", run)], Script({"a": [1] * 9}), rounds=5)
    assert row == Skipped("a", "RuntimeError: out of memory")


def test_the_cpu_clock_times_the_run_and_not_its_preparation():
    import time

    contender = Contender("sleep", lambda seconds: time.sleep(seconds), lambda: (time.sleep(0.1), (0.02,))[1])
    assert 0.02 <= CpuClock().seconds(contender) < 0.09


def test_the_cpu_clock_sees_memory_that_a_run_takes_and_frees():
    import torch

    for _ in range(8):  # freed in pieces that the C library may keep, and that must not hide what comes
        torch.ones(2**22)
    taken = CpuClock().peak(Contender("take", lambda: torch.ones(2**23).sum()))  # 32 MiB
    if taken is None:
        pytest.skip("this system has no /proc/self/clear_refs to start the peak anew with")
    assert math.isclose(taken / 2**20, 32, abs_tol=4)
