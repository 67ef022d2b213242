"""Sampling in which every row has a random stream of its own, whatever batch it travels in.

`torch.multinomial` draws from one stream for the whole batch, so a text would change with its neighbours, with the
batch size and with a resumed run. Here a token is drawn by the Gumbel-max rule: add independent Gumbel noise to the
log-probabilities and take the largest. The noise of a token is a pure function of (seed, row key, step, token id).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor


class RowNoise:
    """Add Gumbel noise to the scores [R, V]; the argmax is then a draw from softmax(scores).

    `keys` names the R rows (any ints or texts); `start` is the width of the running ids before the first new token.
    Only finite scores get noise, so what truncation ruled out stays out. Two rows with the same key and scores draw
    the same token; the device does not matter.

    >>> noise = RowNoise(seed=0, keys=["a", "b", "a"], start=1)
    >>> picked = noise(torch.zeros(3, 1).long(), torch.zeros(3, 1000)).argmax(-1)
    >>> bool(picked[0] == picked[2]), bool(picked[0] == picked[1])
    (True, False)
    """

    def __init__(self, seed: int, keys: Sequence[int | str], start: int) -> None:
        self.streams = torch.tensor([_stream(seed, key) for key in keys])
        self.start = start

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        # Some accelerators have no float64, which the far tail of the noise needs.
        device = torch.device("cpu") if scores.device.type == "mps" else scores.device
        wanted = scores.to(device)
        rows, tokens = torch.nonzero(wanted > -math.inf, as_tuple=True)
        step = input_ids.shape[1] - self.start
        state = _mix(self.streams.to(device) + _signed((step + 1) * _GOLDEN))
        bits = _mix(state[rows] + (tokens + 1) * _GOLDEN)
        uniform = (_shift(bits, 11).double() + 0.5) * 2.0**-53  # in (0, 1), 53 random bits
        noise = -torch.log(-torch.log1p(-uniform))
        noisy = torch.full_like(wanted, -math.inf)
        noisy[rows, tokens] = (wanted[rows, tokens].double() + noise).to(wanted.dtype)
        return noisy.to(scores.device)


def _stream(seed: int, key: int | str) -> int:
    """A signed 64-bit number from the seed and a row's key; 1 and "1" are the same key."""
    digest = hashlib.blake2b(f"{seed}/{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


# SplitMix64: output n of the stream with state s is mix(s + n · golden), so any output can be had without the others.
# The constants are the generator's, written as signed 64-bit numbers since torch has no unsigned arithmetic.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # odd, near 2^64 divided by the golden ratio
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def _mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)) * _FIRST
    z = (z ^ _shift(z, 27)) * _SECOND
    return z ^ _shift(z, 31)


def _signed(number: int) -> int:
    """The signed 64-bit number with the same low 64 bits, which is what torch's own arithmetic wraps to."""
    return (number + 2**63) % 2**64 - 2**63


def _shift(z: Tensor, by: int) -> Tensor:
    """Logical right shift; torch's own keeps the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)
