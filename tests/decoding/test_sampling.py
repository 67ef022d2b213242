"""Random streams that belong to rows."""

from __future__ import annotations

import math

import pytest
import torch

from scalegrad.decoding import RowNoise
from scalegrad.decoding.sampling import _mix, _shift, _signed


def splitmix64(state: int, count: int) -> list[int]:
    """The published generator in plain integers: add the golden gamma, then mix."""
    out = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        out.append(z ^ (z >> 31))
    return out


def test_the_mixer_is_splitmix64() -> None:
    golden = _signed(0x9E3779B97F4A7C15)
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]  # its well-known first outputs
    for state in (0, 1234567, 2**63 + 5, 2**64 - 1):
        ours = _mix(_signed(state) + torch.arange(1, 6) * golden)
        assert [x % 2**64 for x in ours.tolist()] == splitmix64(state, 5)


def test_logical_shift() -> None:
    assert _shift(torch.tensor([-1, 2**62]), 60).tolist() == [15, 4]


def test_noise_is_standard_gumbel_and_independent_over_steps_rows_and_tokens() -> None:
    rows, tokens = 200, 500
    noise = RowNoise(3, range(rows), start=0)
    zero = torch.zeros(rows, tokens, dtype=torch.float64)
    first = noise(torch.zeros(rows, 0), zero)
    second = noise(torch.zeros(rows, 1), zero)
    for sample in (first, second):  # mean 0.5772, variance π²/6; 100,000 draws: standard errors .004 and .009
        assert sample.mean().item() == pytest.approx(0.577216, abs=0.016)
        assert sample.var().item() == pytest.approx(math.pi**2 / 6, abs=0.036)
        assert sample.flatten().unique().numel() == rows * tokens
    quantiles = torch.quantile(first.flatten(), torch.tensor([0.01, 0.5, 0.99], dtype=torch.float64)).tolist()
    assert quantiles == pytest.approx([-math.log(-math.log(u)) for u in (0.01, 0.5, 0.99)], abs=0.1)
    for a, b in ((first, second), (first[:-1], first[1:]), (first[:, :-1], first[:, 1:])):
        correlation = torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1].item()
        assert abs(correlation) < 0.013  # four standard errors


def test_a_row_draws_the_same_whatever_surrounds_it() -> None:
    scores = torch.randn(5, 50, generator=torch.Generator().manual_seed(0))
    keys = ["a", "b", "c", "d", "e"]
    together = RowNoise(9, keys, start=2)(torch.zeros(5, 4), scores)
    for row, key in enumerate(keys):
        # Alone, and with other padding: what counts is how many tokens are new.
        alone = RowNoise(9, [key], start=7)(torch.zeros(1, 9), scores[row : row + 1])
        assert torch.equal(alone[0], together[row])
    assert not torch.equal(RowNoise(10, keys, start=2)(torch.zeros(5, 4), scores), together)


def test_what_truncation_ruled_out_stays_out() -> None:
    scores = torch.tensor([[0.0, -math.inf, 1.0]])
    noisy = RowNoise(0, [0], start=0)(torch.zeros(1, 0), scores)
    assert noisy[0, 1] == -math.inf
    assert noisy[0, [0, 2]].isfinite().all()
