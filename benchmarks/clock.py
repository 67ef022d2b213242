"""How long a run takes and how much memory, on a CPU and on a GPU."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from scalegrad.runs.environment import forget_peak, give_back_memory, peak_bytes, resident_bytes


@dataclass(frozen=True)
class Contender:
    """One implementation: `run(*prepare())` is timed, `prepare()` is not."""

    name: str
    run: Callable[..., Any]
    prepare: Callable[[], tuple[Any, ...]] = tuple


class Clock(Protocol):
    """A device that runs contenders."""

    device: str

    def seconds(self, contender: Contender) -> float:
        """Time of one run."""

    def peak(self, contender: Contender) -> int | None:
        """Bytes in use at the peak of a run above those in use before it; None where the system does not tell."""

    def settle(self) -> None:
        """Give back what nothing uses, so that one contender does not pay for another."""


class CpuClock:
    """Wall time, and the process's resident memory."""

    device = "cpu"

    def seconds(self, contender: Contender) -> float:
        inputs = contender.prepare()
        start = time.perf_counter()
        result = contender.run(*inputs)
        elapsed = time.perf_counter() - start
        del result
        return elapsed

    def peak(self, contender: Contender) -> int | None:
        inputs = contender.prepare()
        give_back_memory()
        if not forget_peak():
            return None
        before = resident_bytes()
        contender.run(*inputs)
        return max(0, peak_bytes() - before)

    def settle(self) -> None:
        gc.collect()


class CudaClock:
    """Device time between events, and the allocator's peak.

    Before each run the queue is filled with a large matrix product. It empties the cache of what an earlier run left,
    and while it runs the host gets ahead, as it does within a training step: the time is the device's own, and a
    contender that waits for the device shows that wait.
    """

    device = "cuda"

    def __init__(self, side: int = 8192) -> None:
        self._a, self._b, self._out = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        event: Any = torch.cuda.Event
        self._start, self._end = event(enable_timing=True), event(enable_timing=True)

    def seconds(self, contender: Contender) -> float:
        inputs = contender.prepare()
        torch.mm(self._a, self._b, out=self._out)
        self._start.record()
        result = contender.run(*inputs)
        self._end.record()
        self._end.synchronize()
        del result
        return float(self._start.elapsed_time(self._end)) / 1e3

    def peak(self, contender: Contender) -> int | None:
        inputs = contender.prepare()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        contender.run(*inputs)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    def settle(self) -> None:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


class SteppingClock(CudaClock):
    """Wall time of whole steps on a GPU: what the host does counts, as in training and in decoding."""

    def seconds(self, contender: Contender) -> float:
        inputs = contender.prepare()
        torch.cuda.synchronize()
        start = time.perf_counter()
        contender.run(*inputs)
        torch.cuda.synchronize()
        return time.perf_counter() - start
