"""What `return_parts` gives beside the loss."""

import math

import pytest
import torch

from scalegrad.metrics import perplexity
from tests.calls import OBJECTIVES, WAYS, run


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_perplexity_leaves_ignored_targets_out(objective, way):
    """p = (1/8, 1/4, 1/8, 1/2): targets 0, 1 and 0 have perplexity (8 · 4 · 8)^(1/3); `nll.mean()` counted the −100."""
    logits = torch.tensor([1.0, 2.0, 1.0, 4.0]).log().expand(2, 2, 4).clone().requires_grad_()
    targets = torch.tensor([[0, 1], [0, -100]])
    for ignored in (-100, 3):
        targets[1, 1] = ignored
        _, parts = run(objective, way, logits, targets, return_parts=True, ignore_index=ignored)
        assert parts.has_target.tolist() == [[True, True], [True, False]]
        assert parts.perplexity().item() == pytest.approx(256 ** (1 / 3), rel=1e-6)
        assert parts.perplexity().item() == pytest.approx(perplexity(parts.nll, num_items=3), rel=1e-6)
        assert not parts.perplexity().requires_grad


def test_perplexity_of_no_targets_is_not_a_number():
    """0 would read as the best of all models."""
    _, parts = run("scale_grad", WAYS[1], torch.zeros(1, 2, 4), torch.full((1, 2), -100), return_parts=True)
    assert math.isnan(parts.perplexity())
