"""The benchmark's float64 answers against the loops of the oracle, and what its checks let through."""

import pytest
import torch
from torch.nn import functional as F

from benchmarks import exact
from benchmarks.cases import Case, make_batch
from benchmarks.exact import ALPHA, GAMMA, Outcome, bounds, errors, exact_answers, judge, peer_bounds
from benchmarks.runner import WrongResult
from scalegrad.sets import Seen
from tests import oracles

OBJECTIVES = {"CE": ("scale_grad", 1.0), "SG": ("scale_grad", GAMMA), "UL": ("unlikelihood", ALPHA)}


def by_oracle(batch, logits, objective):
    """Mean loss and gradient [N, V] of the loops."""
    name, strength = OBJECTIVES[objective]
    rows, steps, vocab = logits.shape
    loss, grad = 0.0, torch.zeros(rows, steps, vocab, dtype=torch.float64)
    for r in range(rows):
        segments = None if batch.segments is None else batch.segments[r].tolist()
        told = oracles.sequence(
            logits[r].tolist(), batch.targets[r].tolist(), Seen(), [strength] * steps, name, segments=segments
        )
        for t, step in enumerate(told):
            loss += step[0] / (rows * steps)
            grad[r, t] = torch.tensor(step[1], dtype=torch.float64) / (rows * steps)
    return loss, grad.flatten(0, 1)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("documents", [0, 3])
@pytest.mark.parametrize("width", [0, 6])
def test_answers_are_the_oracles(objective, documents, width, monkeypatch):
    monkeypatch.setattr(exact, "CHUNK", 60)  # several blocks
    batch = make_batch(Case("k", "g", 2, 9, 23, width, documents), "cpu")
    logits = batch.inputs[0].double() if not width else F.linear(*(x.double() for x in batch.inputs))
    loss, grad = by_oracle(batch, logits, objective)
    answers = exact_answers(batch, (objective,))
    assert answers.loss[objective] == pytest.approx(loss, abs=1e-12)
    if width:
        hidden, weight = (x.double() for x in batch.inputs)
        expected = (grad @ weight, grad.T @ hidden.flatten(0, 1))
    else:
        expected = (grad,)
    for found, right in zip(answers.grads[objective], answers.look(expected), strict=True):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-12)


def plain(batch, objective="CE", spoil=None):
    """Plain torch in the batch's dtype; SG as an exact bias, or spoiled."""
    inputs = [x.detach().requires_grad_() for x in batch.inputs]
    logits = inputs[0] if len(inputs) == 1 else F.linear(*inputs)
    if spoil is not None:
        logits = spoil(logits)
    loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
    return Outcome(loss, torch.autograd.grad(loss, inputs))


@pytest.mark.parametrize("width", [0, 32])
def test_cross_entropy_in_the_place_of_scale_grad_is_red(width):
    case = Case("k", "g", 2, 200, 500, width)
    batch = make_batch(case, "cpu")
    answers = exact_answers(batch, ("CE", "SG"))
    outcome = plain(batch)
    allowed = errors(outcome, answers, "CE", case.dtype)
    assert judge(allowed, bounds(allowed, answers, "CE", case.dtype)) <= 1 / 1.05
    with pytest.raises(WrongResult, match="wrong: "):
        judge(errors(outcome, answers, "SG", case.dtype), bounds(allowed, answers, "SG", case.dtype))


def test_one_element_never_written_is_red():
    case = Case("k", "g", 1, 100, 500)
    batch = make_batch(case, "cpu")
    answers = exact_answers(batch, ("CE",))
    outcome = plain(batch)
    allowed = bounds(errors(outcome, answers, "CE", case.dtype), answers, "CE", case.dtype)
    for value in (0.0, float("nan")):
        grad = outcome.grads[0].clone()
        grad[0, 0, 400] = value  # a small gradient in the first row, which is looked at
        with pytest.raises(WrongResult) as red:
            judge(errors(Outcome(outcome.loss, (grad,)), answers, "CE", case.dtype), allowed)
        assert not red.value.error <= 1


def test_errors_by_hand():
    batch = make_batch(Case("k", "g", 1, 4, 8), "cpu")
    answers = exact_answers(batch, ("CE",))
    right = answers.grads["CE"][0]
    outcome = Outcome(torch.tensor(answers.loss["CE"] + 0.5, dtype=torch.float64), (1.25 * right[None],))
    found = errors(outcome, answers, "CE", torch.bfloat16)
    assert found["loss"] == pytest.approx(0.5)
    assert found["gradient of the logits"] == pytest.approx(0.25)
    assert found["largest error of a logit's gradient"] == pytest.approx(0.25 * float(right.abs().max()))
    assert found["worst error of a logit's gradient in ulps"] == pytest.approx(0.25 * 128, rel=1e-3)


def test_bounds_are_the_stated_ones():
    batch = make_batch(Case("k", "g", 1, 4, 8, 4), "cpu")
    answers = exact_answers(batch, ("CE",))
    of_torch = {"loss": 0.1, "gradient of the hidden states": 0.2, "gradient of the weight": 0.3}
    ulp = 2**-7
    assert bounds(of_torch, answers, "CE", torch.bfloat16) == pytest.approx(
        {
            "loss": 0.105 + ulp * answers.loss["CE"],
            "gradient of the hidden states": 0.21 + ulp,
            "gradient of the weight": 0.6,
        }
    )
    assert peer_bounds(answers, "CE")["gradient of the weight"] == 0.1
