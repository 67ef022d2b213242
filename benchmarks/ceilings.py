"""The least time a machine could take: bytes and floating-point operations over what it does at best."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch

from benchmarks.clock import Clock, Contender


@dataclass(frozen=True)
class Ceilings:
    """What this machine reaches on a large copy (bytes read plus written) and on a large matrix product."""

    bytes_per_second: float
    flops_per_second: float

    def floor(self, *, moved: float = 0.0, flops: float = 0.0) -> float:
        """Seconds below which the work cannot be done.

        >>> Ceilings(bytes_per_second=4e12, flops_per_second=8e14).floor(moved=8e9, flops=4e12)  # 2 ms and 5 ms
        0.005
        """
        return max(moved / self.bytes_per_second, flops / self.flops_per_second)


def measure_ceilings(clock: Clock, dtype: torch.dtype, *, elements: int, side: int, rounds: int = 10) -> Ceilings:
    """Copy `elements` numbers, and multiply two random matrices of `side` × `side`."""
    copy = _best(clock, _copy(clock.device, dtype, elements), rounds)
    product = _best(clock, _product(clock.device, dtype, side), rounds)
    return Ceilings(2 * elements * dtype.itemsize / copy, 2 * side**3 / product)


def _copy(device: str, dtype: torch.dtype, elements: int) -> Contender:
    source = torch.randn(elements, device=device, dtype=dtype)
    target = torch.empty_like(source)
    return Contender("copy", lambda: target.copy_(source))


def _product(device: str, dtype: torch.dtype, side: int) -> Contender:
    a, b, out = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(3))
    return Contender("product", lambda: torch.mm(a, b, out=out))


def _best(clock: Clock, contender: Contender, rounds: int) -> float:
    times = [clock.seconds(contender) for _ in range(rounds + 2)]
    return statistics.median(times[2:])
