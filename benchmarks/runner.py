"""Time and memory of several implementations of one thing, in turns, so that each meets the same machine."""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.clock import Clock, Contender


@dataclass(frozen=True)
class Measurement:
    """One implementation on one case."""

    name: str
    seconds: float  # median
    spread: float  # half the distance between the quartiles, over the median
    extra_bytes: int | None  # peak above what was held before; None where the system does not tell
    seconds_ratio: float | None  # to the first implementation of the case
    bytes_ratio: float | None
    floor_ratio: float | None  # to the least time the machine could take
    error: float | None  # the largest error over its bound, in [0, 1]


@dataclass(frozen=True)
class Skipped:
    """An implementation without a speed, and why."""

    name: str
    reason: str
    error: float | None = None  # the largest error over its bound, where that is the reason


Row = Measurement | Skipped


class WrongResult(AssertionError):
    """An implementation does not compute what it should: its speed means nothing."""

    def __init__(self, message: str, error: float) -> None:
        super().__init__(message)
        self.error = error  # over its bound


class Unavailable(RuntimeError):
    """An implementation cannot run on this machine."""


def compare(
    contenders: Sequence[Contender],
    clock: Clock,
    *,
    check: Callable[[str, Any], float | None] | None = None,
    rounds: int = 7,
    patience: float = 8.0,
    floor: float | None = None,
) -> list[Row]:
    """Run the contenders in turns, each round in an order of its own; the first is what the others are compared with.

    One that fails is skipped with its reason and the others go on.

    Args:
        check: called with (name, result) before anything is timed. It gives the largest error over its bound, and
            raises `WrongResult` where that is above 1: such a contender gets no speed.
        rounds: how often each is timed; a slow one as often as fits in `patience` seconds, at least twice.
        floor: the least seconds the machine could take.
    """
    clock.settle()
    runs = {c.name: _Runs(c, clock) for c in contenders}
    for run in runs.values():
        run.attempt(partial(run.begin, check))
    gc.disable()  # a collection in the middle of a run would be timed with it
    try:
        for run in runs.values():
            run.attempt(run.warm)
        drawn = random.Random(0)
        for turn in range(rounds):
            order = drawn.sample(list(runs.values()), len(runs))  # a heavy one slows whoever comes next: each in turn
            for run in order:
                if turn < run.planned(rounds, patience):
                    run.attempt(run.time)
    finally:
        gc.enable()
    base = next(iter(runs.values()), None)
    return [run.row(base, floor) for run in runs.values()]


class _Runs:
    """What is known of one contender so far."""

    def __init__(self, contender: Contender, clock: Clock) -> None:
        self.contender, self.clock = contender, clock
        self.problem: str | None = None
        self.error: float | None = None
        self.peak: int | None = None
        self.first = 0.0
        self.seconds: list[float] = []

    def attempt(self, action: Callable[[], None]) -> None:
        """Unless it has failed before; a failure is kept as the reason."""
        if self.problem is None:
            try:
                action()
            except Exception as failure:  # whatever a contender does, the others go on
                self.problem = reason(failure)
                self.error = failure.error if isinstance(failure, WrongResult) else None
            if self.problem is not None:
                self.clock.settle()  # it may have left much behind

    def begin(self, check: Callable[[str, Any], float | None] | None) -> None:
        """Compile, check and measure memory."""
        result = self.contender.run(*self.contender.prepare())
        if check is not None:
            self.error = check(self.contender.name, result)
        del result
        self.peak = self.clock.peak(self.contender)

    def warm(self) -> None:
        """A run with the allocator as it will be; it is not counted."""
        self.first = self.clock.seconds(self.contender)

    def time(self) -> None:
        self.seconds.append(self.clock.seconds(self.contender))

    def planned(self, rounds: int, patience: float) -> int:
        return max(2, min(rounds, int(patience / max(self.first, 1e-9))))

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.problem is None and self.seconds else None

    def row(self, base: _Runs | None, floor: float | None) -> Row:
        median = self.median
        if median is None:
            return Skipped(self.contender.name, self.problem or "no round was run", self.error)
        quartiles = statistics.quantiles(self.seconds, n=4) if len(self.seconds) > 2 else [median] * 3
        base_median, base_peak = (None, None) if base is None else (base.median, base.peak)
        return Measurement(
            name=self.contender.name,
            seconds=median,
            spread=(quartiles[2] - quartiles[0]) / 2 / median,
            extra_bytes=self.peak,
            seconds_ratio=ratio(median, base_median),
            bytes_ratio=ratio(self.peak, base_peak) if base_median is not None else None,
            floor_ratio=ratio(median, floor),
            error=self.error,
        )


def ratio(value: float | None, base: float | None) -> float | None:
    """`value` over `base`, or None where one is missing or the base is nothing.

    >>> ratio(3, 2), ratio(3, None), ratio(3, 0)
    (1.5, None, None)
    """
    return None if value is None or not base else value / base


def reason(failure: Exception) -> str:
    """A failure in a line.

    >>> reason(KeyError("weight"))
    "KeyError: 'weight'"
    """
    first = (str(failure).strip().splitlines() or [""])[0]
    said = first if isinstance(failure, (WrongResult, Unavailable)) else f"{type(failure).__name__}: {first}"
    return said if len(said) <= 120 else said[:119] + "…"
