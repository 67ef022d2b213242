"""Where there is little or nothing to compute: each edge has a defined value, and NaN is never hidden."""

import math

import pytest
import torch
from torch.nn import functional as F

from scalegrad import functional as SF
from tests.calls import OBJECTIVES, WAYS, gradient, run

NAN = math.nan
LOGITS, TARGETS = torch.zeros(2, 3, 5), torch.tensor([[0, 1, 2], [3, 4, -100]])
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def ids(*shape, value=0):
    return torch.full(shape, value, dtype=torch.int64)


# ---- NaN and infinity ------------------------------------------------------------------------------------------------


@every_way
@both_objectives
def test_nan_flows_through_when_not_checked(objective, way):
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    logits[0, 1, 3] = NAN
    loss, grad = gradient(objective, way, logits, TARGETS, reduction="none")
    assert loss.isnan().tolist() == [[False, True, False], [False, False, False]]
    assert grad[0, 1].isnan().all()
    assert not grad[[0, 0, 1, 1], [0, 2, 0, 1]].isnan().any()  # the other rows are what they were
    assert gradient(objective, way, logits, TARGETS)[0].isnan()


@every_way
@both_objectives
def test_nan_in_ignored_rows_is_harmless(objective, way):
    clean = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    dirty = clean.clone()
    dirty[1, 2] = NAN  # TARGETS[1, 2] is ignored
    for reduction in ("mean", "sum", "none"):
        expected, expected_grad = gradient(objective, way, clean, TARGETS, reduction=reduction)
        loss, grad = gradient(objective, way, dirty, TARGETS, reduction=reduction, check=True)
        assert torch.equal(loss, expected)
        assert torch.equal(grad, expected_grad)


@pytest.mark.parametrize("impl", ["reference", "chunked"])
def test_nan_in_ignored_hidden_states_does_not_reach_the_weight(impl):
    hidden = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    grads = []
    for value in (0.0, NAN):
        hidden[1, 2] = value
        weight = torch.ones(5, 4).requires_grad_()
        SF.linear_scale_grad(hidden, weight, TARGETS, impl=impl).backward()
        grads.append(weight.grad)
    assert torch.equal(*grads)


@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)  # no hidden states give −inf
def test_minus_infinity_masks_a_token(way):
    """Not a mistake: the token has probability 0 and no gradient; everything else is as if it were not there."""
    logits = torch.randn(1, 3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = torch.tensor([[0, 1, 0]])
    for objective in OBJECTIVES:
        expected, expected_grad = gradient(objective, way, logits[..., :4], targets)
        masked = logits.clone()
        masked[..., 4] = -math.inf
        loss, grad = gradient(objective, way, masked, targets)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-14)
        assert (grad[..., :4] - expected_grad).abs().max() < 1e-15
        assert (grad[..., 4] == 0).all()


# ---- little or nothing --------------------------------------------------------------------------------------


@every_way
@both_objectives
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0), (0, 0), (0,), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("extras", [False, True], ids=["", "context, source, segments"])
def test_nothing_to_average_is_a_connected_zero(objective, way, reduction, shape, extras):
    """All targets ignored, or no targets at all: 0, with gradients of 0."""
    targets = ids(*shape, value=-100)
    more = {"segments": ids(*shape)} if extras or len(shape) == 1 else {}
    if extras:
        more |= {"context": ids(*shape, value=1), "source": ids(*shape[:-1], 2, value=3)}
    logits = torch.randn(*shape, 5).requires_grad_()
    loss, parts = run(objective, way, logits, targets, reduction=reduction, return_parts=True, **more)
    assert loss.dtype == torch.float32
    assert loss.shape == (shape if reduction == "none" else ())
    assert (loss == 0).all()
    loss.sum().backward()
    assert torch.equal(logits.grad, torch.zeros(*shape, 5))
    assert all(part.shape == shape and not part.any() for part in parts)


def test_nothing_to_average_with_num_items_is_zero():
    """A microbatch without targets adds nothing to its accumulation window, even an empty one."""
    for num_items in (0, 7, torch.tensor(0), torch.tensor(7)):
        logits = LOGITS.clone().requires_grad_()
        loss = SF.scale_grad(logits, ids(2, 3, value=-100), num_items=num_items)
        loss.backward()
        assert loss.item() == 0
        assert not logits.grad.any()


@every_way
def test_one_step(way):
    """T = 1: nothing was seen, both are cross-entropy; with a source, not."""
    logits = torch.tensor([[[0.0, math.log(2), math.log(5)]]], dtype=torch.float64)
    target = torch.tensor([[1]])
    for objective in OBJECTIVES:
        loss, grad = gradient(objective, way, logits, target, reduction="sum")
        assert loss.item() == pytest.approx(math.log(8 / 2))
        assert grad.flatten().tolist() == pytest.approx([1 / 8, 2 / 8 - 1, 5 / 8])
    loss, grad = gradient("scale_grad", way, logits, target, 0.5, source=torch.tensor([[2]]))
    assert loss.item() == pytest.approx(math.log(6.5 / 1))  # (.5 + 1 + 5)/1
    assert grad.flatten().tolist() == pytest.approx([0.5 / 6.5, 1 / 6.5 - 1, 5 / 6.5])


@every_way
@both_objectives
def test_one_token(objective, way):
    """V = 1: it is certain, and no loss can say otherwise."""
    loss, grad = gradient(objective, way, torch.randn(1, 3, 1), ids(1, 3))
    assert loss.item() == 0
    assert (grad == 0).all()
    uniform, _ = gradient(objective, way, torch.zeros(1, 3, 1), ids(1, 3), label_smoothing=0.5)
    assert uniform.item() == 0


@every_way
def test_two_tokens(way):
    """V = 2, p = (1/4, 3/4), token 0 seen, then 1: UL adds −log(1 − 1/4) = log 4/3 at the second step."""
    logits = torch.tensor([0.0, math.log(3)], dtype=torch.float64).expand(1, 2, 2)
    targets = torch.tensor([[0, 1]])
    loss, grad = gradient("unlikelihood", way, logits, targets, reduction="none")
    assert loss.flatten().tolist() == pytest.approx([math.log(4), 2 * math.log(4 / 3)])
    assert grad[0, 1].tolist() == pytest.approx([0.5, -0.5])  # 2·p₀; (1 − 1/3)·3/4 − 1
    loss, grad = gradient("scale_grad", way, logits, targets, 0.5, reduction="none")
    assert loss.flatten().tolist() == pytest.approx([math.log(4), math.log(2.5 / 1.5)])
    assert grad[0, 1].tolist() == pytest.approx([0.4, -0.4])


@every_way
@both_objectives
def test_ignore_index_may_be_a_token(objective, way):
    """Padding by an id of its own: that id is neither a target nor seen."""
    logits = torch.randn(1, 4, 5, generator=torch.Generator().manual_seed(0))
    expected = gradient(objective, way, logits, torch.tensor([[1, -100, 2, 1]]))
    actual = gradient(objective, way, logits, torch.tensor([[1, 0, 2, 1]]), ignore_index=0)
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_mean_divides_by_num_items():
    total = SF.scale_grad(LOGITS, TARGETS, reduction="sum")
    assert SF.scale_grad(LOGITS, TARGETS).item() == pytest.approx(total.item() / 5)  # five targets are kept
    for num_items in (10, 10.0, torch.tensor(10), torch.tensor(10.0)):
        assert SF.scale_grad(LOGITS, TARGETS, num_items=num_items).item() == pytest.approx(total.item() / 10)
    assert F.cross_entropy(LOGITS.flatten(0, 1), TARGETS.flatten()).item() == pytest.approx(math.log(5))


def test_gamma_at_ignored_targets_may_be_anything():
    gamma = torch.full((2, 3), 0.5)
    expected = SF.scale_grad(LOGITS, TARGETS, gamma)
    for value in (0.0, NAN, 7.0):
        gamma[1, 2] = value  # TARGETS[1, 2] is ignored
        for way in WAYS:
            loss, grad = gradient("scale_grad", way, LOGITS, TARGETS, gamma)
            assert loss.item() == pytest.approx(expected.item())
            assert grad.isfinite().all()
