"""Time and memory of several implementations of one thing, in turns, so that each meets the same machine."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Measurement:
    """One implementation on one case."""

    case: str
    name: str
    seconds: float  # median
    spread: float  # half the distance between the quartiles, over the median
    extra_bytes: int | None  # peak above what was held before; None where the system does not tell
    seconds_ratio: float  # to the first implementation of the case
    bytes_ratio: float | None


class WrongResult(AssertionError):
    """An implementation does not compute what it should: its speed means nothing."""


def compare(
    case: str,
    contenders: dict[str, Callable[[], object]],
    *,
    check: Callable[[str, object], None] | None = None,
    rounds: int = 7,
    few: dict[str, int] | None = None,
    device: str = "cpu",
) -> list[Measurement]:
    """Run the contenders in turns; the first is what the others are compared with.

    Args:
        check: called with (name, result) before anything is timed; it raises `WrongResult` where the result is wrong.
        few: fewer rounds for the slow ones.
    """
    for name, run in contenders.items():  # also the warm-up
        result = run()
        if check is not None:
            check(name, result)
        del result
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    peaks = {name: peak_memory(run, device) for name, run in contenders.items()}
    for turn in range(rounds):
        for name, run in contenders.items():
            if turn < (few or {}).get(name, rounds):
                seconds[name].append(_time(run, device))
    first = next(iter(contenders))
    base, base_bytes = statistics.median(seconds[first]), peaks[first]
    table = []
    for name, times in seconds.items():
        median, peak = statistics.median(times), peaks[name]
        quartiles = statistics.quantiles(times, n=4) if len(times) > 2 else [median] * 3
        bytes_ratio = None if peak is None or not base_bytes else peak / base_bytes
        spread = (quartiles[2] - quartiles[0]) / 2 / median
        table.append(Measurement(case, name, median, spread, peak, median / base, bytes_ratio))
    return table


def _time(run: Callable[[], object], device: str) -> float:
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    result = run()
    if device == "cuda":
        torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def peak_memory(run: Callable[[], object], device: str) -> int | None:
    """Bytes in use at the peak of a run above those in use before it."""
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        run()
        return torch.cuda.max_memory_allocated() - before
    if sys.platform != "linux":
        return None
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts from here
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")
