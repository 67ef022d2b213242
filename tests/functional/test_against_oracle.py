"""Every implementation against the float64 loops, values and gradients, on every kind of batch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from scalegrad.ops import chunked, sparse
from tests.cases import Case, cases

OBJECTIVES = ["scale_grad", "unlikelihood"]
MANY = settings(max_examples=150, deadline=None)


def any_case(impl, **kinds):
    """Complements of unlikelihood run under the reference alone."""
    return st.one_of(cases("scale_grad", **kinds), cases("unlikelihood", complements=impl == "reference", **kinds))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks and chunks even for tiny batches."""
    monkeypatch.setattr(sparse, "CPU_BLOCK", 20)
    monkeypatch.setattr(chunked, "CHUNK_ELEMENTS", 50)


def close(actual, expected, tolerance):
    error = (actual.double() - expected).abs() / expected.abs().clamp(min=1)
    assert error.max() <= tolerance if error.numel() else True


@pytest.mark.parametrize("impl", ["reference", "sparse"])
@MANY
@given(data=st.data())
def test_logits_float64(impl, data):
    case: Case = data.draw(any_case(impl))
    logits = case.logits.clone().requires_grad_()
    loss, parts = case.run(logits, impl, reduction="none", return_parts=True)
    loss.sum().backward()
    expected, grad, nll, mass, seen = case.expected()
    close(loss.detach(), expected, 1e-10)
    close(logits.grad, grad, 1e-10)
    close(parts.nll, nll, 1e-10)
    close(parts.seen_mass, mass, 1e-10)
    assert torch.equal(parts.target_seen, seen)


@pytest.mark.parametrize("impl", ["reference", "chunked"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
@MANY
@given(data=st.data())
def test_linear_float64(impl, reduction, data):
    case: Case = data.draw(any_case(impl))
    rows, steps, vocab = case.logits.shape
    random = torch.Generator().manual_seed(0)
    hidden = torch.randn(rows, steps, 6, generator=random, dtype=torch.float64)
    weight = torch.randn(vocab, 6, generator=random, dtype=torch.float64)
    bias = torch.randn(vocab, generator=random, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (hidden, weight, bias)]
    loss, parts = case.run_linear(hidden, weight, impl, bias=bias, reduction=reduction, return_parts=True)
    expected, grad, nll, mass, seen = case.expected(F.linear(hidden, weight, bias).detach())
    if reduction == "mean":
        upstream = torch.ones(rows, steps, dtype=torch.float64) / max(1, int((case.targets >= 0).sum()))
        loss.backward()
        close(loss.detach(), (expected * upstream).sum(), 1e-10)
    else:
        upstream = torch.randn(rows, steps, generator=random, dtype=torch.float64)
        loss.backward(upstream)
        close(loss.detach(), expected, 1e-10)
    grad = (grad * upstream[..., None]).reshape(-1, vocab)
    close(inputs[0].grad.reshape(-1, 6), grad @ weight.detach(), 1e-10)
    close(inputs[1].grad, grad.T @ hidden.detach().reshape(-1, 6), 1e-10)
    close(inputs[2].grad, grad.sum(0), 1e-10)
    close(parts.nll, nll, 1e-10)
    close(parts.seen_mass, mass, 1e-10)
    assert torch.equal(parts.target_seen, seen)


@pytest.mark.parametrize("impl", ["reference", "sparse"])
@MANY
@given(data=st.data())
def test_logits_float32_with_huge_logits(impl, data):
    case: Case = data.draw(any_case(impl, spread=(1.0, 100.0, 1e4), head=False))
    logits = case.logits.clamp(-1e4, 1e4).float().requires_grad_()
    case.strength = case.strength.float()  # what the loss gets is what the oracle gets
    loss = case.run(logits, impl, reduction="none")
    loss.sum().backward()
    expected, grad, *_ = case.expected(logits.detach())
    # A loss is the difference of two numbers as large as the logits, each rounded to float32.
    rounding = torch.finfo(torch.float32).eps * logits.detach().double().abs().amax(-1)
    error = (loss.detach().double() - expected).abs()
    assert (error <= 1e-5 * expected.abs().clamp(min=1) + rounding).all()
    close(logits.grad, grad, 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("objective", OBJECTIVES)
@MANY
@given(data=st.data())
def test_half_precision_errs_no_more_than_plain_torch(objective, dtype, data):
    case: Case = data.draw(cases(objective, complements=False, spread=(1.0, 5.0), head=False))
    logits = case.logits.to(dtype).requires_grad_()
    loss = case.run(logits, "sparse", reduction="none")
    loss.sum().backward()
    expected, grad, *_ = case.expected(logits.detach())
    plain = logits.detach().clone().requires_grad_()
    plain_loss = F.cross_entropy(plain.flatten(0, 1), case.targets.flatten(), reduction="none")
    plain_loss.sum().backward()
    mle = Case(case.logits, case.targets, case.token_set, "unlikelihood", torch.zeros_like(case.strength), False)
    plain_expected, plain_grad, *_ = mle.expected(logits.detach())
    ulp = torch.finfo(dtype).eps
    loss_error = (plain_loss.detach().double() - plain_expected.flatten()).abs().max()
    grad_error = (plain.grad.double() - plain_grad).abs().max()
    assert loss.dtype == torch.float32
    assert (loss.double() - expected).abs().max() <= 2 * loss_error + ulp * expected.abs().max() + 1e-6
    assert (logits.grad.double() - grad).abs().max() <= 2 * grad_error + ulp * grad.abs().max()
