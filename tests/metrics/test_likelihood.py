from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from scalegrad.metrics import bits_per_byte, calibrated_perplexity, perplexity


def test_perplexity_of_a_uniform_model_is_the_vocabulary() -> None:
    nll = F.cross_entropy(torch.zeros(12, 50, dtype=torch.float64), torch.arange(12), reduction="none")
    assert perplexity(nll) == pytest.approx(50)
    assert perplexity(nll.view(3, 4)) == pytest.approx(50)


def test_ignored_targets_do_not_dilute() -> None:
    targets = torch.tensor([1, -100, 2, -100])
    logits = torch.log(torch.tensor([[0.25, 0.25, 0.5]] * 4))
    nll = F.cross_entropy(logits, targets, reduction="none", ignore_index=-100)
    assert perplexity(nll, num_items=2) == pytest.approx(math.sqrt(8))


def test_calibrated_perplexity_is_that_of_the_scaled_distribution() -> None:
    gamma, p = 0.2, np.array([0.5, 0.3, 0.2])
    seen = np.array([True, False, False])
    scaled = np.where(seen, p, gamma * p)
    scaled /= scaled.sum()  # .5, .06, .04 over .6
    losses = -np.log(scaled[[0, 1]])
    assert calibrated_perplexity(losses) == pytest.approx(1 / math.sqrt((0.5 / 0.6) * (0.06 / 0.6)))


def test_bits_per_byte_is_the_same_for_any_cutting() -> None:
    whole = [math.log(16)]
    halves = [math.log(4), math.log(4)]
    assert bits_per_byte(whole, 8) == pytest.approx(0.5)
    assert bits_per_byte(halves, 8) == pytest.approx(0.5)


def test_float32_losses_are_summed_in_float64() -> None:
    nll = torch.full((3_000_000,), 3.1, dtype=torch.float32)
    assert perplexity(nll) == pytest.approx(math.exp(float(np.float32(3.1))), rel=1e-12)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="nll must hold at least one value; it is empty"):
        perplexity([])
    with pytest.raises(ValueError, match="sg_losses must hold at least one value"):
        calibrated_perplexity([])
    with pytest.raises(ValueError, match="num_items must be at least 1, not 0"):
        perplexity([1.0], num_items=0)
    with pytest.raises(ValueError, match="n_bytes must be at least 1, not 0"):
        bits_per_byte([1.0], 0)
