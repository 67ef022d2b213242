"""The four losses, and every way to run them, behind one call: logits in, loss out."""

from __future__ import annotations

import torch

from scalegrad import functional as SF

OBJECTIVES = ("scale_grad", "unlikelihood")
WAYS = (("logits", "reference"), ("logits", "sparse"), ("linear", "reference"), ("linear", "chunked"))  # (form, impl)
FAST_WAYS = tuple(way for way in WAYS if way[1] != "reference")
FOUR = tuple((objective, form) for objective in OBJECTIVES for form in ("logits", "linear"))


def function(objective, form):
    """One of the four public functions."""
    return getattr(SF, objective if form == "logits" else f"linear_{objective}")


def run(objective, way, logits, targets, *strength, **options):
    """The loss of these logits. The linear forms get them as hidden states, with the identity as weight."""
    form, impl = way
    head = (logits,) if form == "logits" else (logits, torch.eye(logits.shape[-1], dtype=logits.dtype))
    return function(objective, form)(*head, targets, *strength, impl=impl, **options)


def gradient(objective, way, logits, targets, *strength, **options):
    """(loss, ∂ its sum / ∂ logits), detached."""
    logits = logits.detach().clone().requires_grad_()
    loss = run(objective, way, logits, targets, *strength, **options)
    loss.sum().backward()
    return loss.detach(), logits.grad
