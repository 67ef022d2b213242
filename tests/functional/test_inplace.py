"""inplace=True: the gradient takes the memory of the logits, and nothing else suffers."""

import pytest
import torch

from scalegrad import functional as SF
from tests.calls import OBJECTIVES, function, gradient

TARGETS = torch.tensor([[0, 1, 0, 3], [4, -100, 4, 2]])
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def random_logits(dtype=torch.float64):
    return torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0), dtype=dtype)


def gradient_reaching(logits, loss):
    """The gradient that arrives at `logits`, itself: not a copy."""
    arrived = []
    logits.register_hook(arrived.append)
    loss.backward()
    return arrived[0]


@both_objectives
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "settings", [{}, {"softcap": 3.0, "logit_scale": 0.5, "label_smoothing": 0.1}], ids=["", "head"]
)
def test_inplace_reuses_the_memory_of_the_logits(objective, reduction, dtype, settings):
    leaf = random_logits(dtype=dtype).requires_grad_()
    logits = leaf * 1
    memory = logits.data_ptr()
    loss = function(objective, "logits")(logits, TARGETS, inplace=True, reduction=reduction, **settings)
    arrived = gradient_reaching(logits, 2 * loss.sum())
    assert arrived.data_ptr() == memory
    loss_apart, expected = gradient(objective, ("logits", "sparse"), leaf, TARGETS, reduction=reduction, **settings)
    assert torch.equal(loss.detach(), loss_apart)
    assert torch.equal(leaf.grad, 2 * expected)


def test_inplace_with_a_kept_graph():
    leaf = random_logits().requires_grad_()
    loss = SF.scale_grad(leaf * 1, TARGETS, inplace=True) * 3
    loss.backward(retain_graph=True)
    loss.backward()
    _, expected = gradient("scale_grad", ("logits", "sparse"), leaf, TARGETS)
    assert (leaf.grad - 6 * expected).abs().max() < 1e-15


@pytest.mark.parametrize("saves", [torch.exp, torch.tanh, lambda x: x.softmax(-1)], ids=["exp", "tanh", "softmax"])
def test_inplace_never_corrupts_what_was_saved(saves):
    """An operation that keeps its own output for the backward pass would read the gradient instead: torch raises."""
    leaf = random_logits().requires_grad_()
    loss = SF.scale_grad(saves(leaf), TARGETS, inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_inplace_leaves_logits_alone_where_no_gradient_is_made():
    leaf = random_logits().requires_grad_()
    logits = leaf * 1
    with torch.no_grad():
        SF.scale_grad(logits, TARGETS, inplace=True)
    SF.scale_grad(logits.detach(), TARGETS, inplace=True)
    SF.scale_grad(logits, TARGETS, inplace=True, impl="reference")
    assert torch.equal(logits, leaf)


def test_one_row_of_shared_memory_is_not_written_in_place():
    """[1, T, 1] expanded to [1, T, V] has no room for a gradient: it is made beside."""
    base = torch.zeros(1, 4, 1, dtype=torch.float64).requires_grad_()
    SF.scale_grad((base * 1).expand(1, 4, 5), TARGETS[:1], inplace=True).backward()
    assert base.grad.abs().max() < 1e-15  # Σ gradients = 0
