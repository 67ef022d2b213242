"""The path of a GPU, where no value may be looked at, run here on a CPU: the same numbers, ignored rows and all."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.functional import inputs, losses
from scalegrad.ops import chunked, sparse
from tests.calls import FAST_WAYS, OBJECTIVES, function, gradient
from tests.cases import Case, cases


@pytest.fixture(autouse=True)
def no_looking(monkeypatch):
    monkeypatch.setattr(sparse, "sync_stalls", lambda values: True)
    monkeypatch.setattr(chunked, "sync_stalls", lambda values: True)
    for module in (inputs, losses):
        monkeypatch.setattr(module, "may_sync", lambda head, options: False)
    monkeypatch.setattr(sparse, "CPU_BLOCK", 40)
    monkeypatch.setattr(chunked, "CHUNK_ELEMENTS", 50)


@pytest.mark.parametrize("form", ["logits", "linear"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_against_the_oracle(objective, form, data):
    case: Case = data.draw(cases(objective, complements=objective == "scale_grad"))
    logits = case.logits.clone().requires_grad_()
    options = {"reduction": "none", "return_parts": True}
    if form == "logits":
        loss, parts = case.run(logits, "sparse", **options)
    else:
        weight = torch.eye(logits.shape[-1], dtype=logits.dtype)
        loss, parts = case.run_linear(logits, weight, "chunked", **options)
    loss.sum().backward()
    expected, grad, nll, mass, seen = case.expected()
    for actual, exact in ((loss, expected), (logits.grad, grad), (parts.nll, nll), (parts.seen_mass, mass)):
        assert ((actual - exact).abs() <= 1e-10 * exact.abs().clamp(min=1)).all()
    assert torch.equal(parts.target_seen, seen)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("way", FAST_WAYS, ids="-".join)
@pytest.mark.parametrize("inplace", [False, True])
def test_nan_in_ignored_rows_is_harmless(objective, way, inplace):
    option = {"inplace": True} if inplace and way[0] == "logits" else {}
    targets = torch.tensor([[0, 1, -100], [-100, 4, 4]])
    clean = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    dirty = clean.masked_fill((targets < 0)[..., None], math.nan)
    for reduction in ("mean", "none"):
        expected, exact = gradient(objective, way, clean, targets, reduction=reduction)
        logits = dirty.clone().requires_grad_()
        head = (logits * 1,) if way[0] == "logits" else (logits, torch.eye(5).requires_grad_())
        loss = function(objective, way[0])(*head, targets, reduction=reduction, impl=way[1], **option)
        loss.sum().backward()
        assert torch.equal(loss.detach(), expected)
        assert torch.equal(logits.grad, exact)
        if way[0] == "linear":
            assert head[1].grad.isfinite().all()


@pytest.mark.parametrize("form", ["logits", "linear"])
def test_a_callable_gamma(form):
    """γ follows mass and entropy; what it is told at ignored targets, NaN included, does not matter."""
    targets = torch.tensor([[0, 1, -100], [-100, 4, 4]])
    clean = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    dirty = clean.masked_fill((targets < 0)[..., None], math.nan)
    weight = () if form == "logits" else (torch.eye(5, dtype=torch.float64),)
    values = [
        function("scale_grad", form)(logits, *weight, targets, lambda position, entropy, mass: 1 - mass * entropy / 4)
        for logits in (clean, dirty)
    ]
    assert values[0].item() == values[1].item()
    assert math.isfinite(values[0].item())
