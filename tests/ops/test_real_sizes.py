"""GPT-2's vocabulary, blocks and chunks as shipped, two threads: the fast paths against the reference in float64."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from scalegrad import functional as SF
from scalegrad.ops import chunked, sparse
from scalegrad.sets import NgramRepeat, Seen
from tests.calls import OBJECTIVES, function

VOCAB, STEPS, WIDTH = 50257, 48, 16


@pytest.fixture(autouse=True)
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def batch():
    random = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, STEPS, WIDTH, generator=random)
    weight = torch.randn(VOCAB, WIDTH, generator=random)
    targets = torch.randint(0, 20, (2, STEPS), generator=random) * 2500  # few ids, far apart: they repeat
    targets[0, 5:9] = -100
    targets[1, 40:] = -100
    return hidden, weight, targets


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("discourage", [Seen(), Seen(window=8) | NgramRepeat(2)], ids=repr)
def test_gpt2_vocabulary(objective, discourage):
    hidden, weight, targets = batch()
    logits = F.linear(hidden, weight)
    exact = logits.double().requires_grad_()
    expected = function(objective, "logits")(exact, targets, discourage=discourage, impl="reference")
    expected.backward()

    given = logits.clone().requires_grad_()
    loss = function(objective, "logits")(given, targets, discourage=discourage, impl="sparse")
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert (given.grad - exact.grad).norm() <= 1e-5 * exact.grad.norm()

    head = [hidden.requires_grad_(), weight.requires_grad_()]
    fused = function(objective, "linear")(*head, targets, discourage=discourage, impl="chunked")
    fused.backward()
    grad = exact.grad.flatten(0, 1)
    assert fused.item() == pytest.approx(expected.item(), rel=1e-6)
    for ours, true in (
        (hidden.grad, exact.grad @ weight.double()),
        (weight.grad, grad.T @ hidden.double().flatten(0, 1)),
    ):
        assert (ours - true).norm() <= 1e-5 * true.norm()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_logits_are_never_whole(reduction, monkeypatch):
    """No more rows of logits at once than a chunk has, forward and backward."""
    hidden, weight, targets = batch()
    monkeypatch.setattr(chunked, "CHUNK_ELEMENTS", 10 * VOCAB)
    rows = []
    fill = sparse.fill
    monkeypatch.setattr(sparse, "fill", lambda logits, *rest: rows.append(len(logits)) or fill(logits, *rest))
    SF.linear_scale_grad(hidden.requires_grad_(), weight, targets, reduction=reduction).sum().backward()
    kept = int((targets >= 0).sum())
    assert max(rows) == 10
    assert sum(rows) == kept * (1 if reduction == "mean" else 2)  # a row's own upstream gradient takes a second pass


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing(reentrant):
    """The loss inside a checkpointed block: computed again in the backward pass, to the same gradients."""
    hidden, weight, targets = (x[:, :7] if x.dim() > 1 and len(x) == 2 else x[:300] for x in batch())
    targets = targets % 300
    grads = []
    for checkpointed in (True, False):
        head = [hidden.clone().requires_grad_(), weight.clone().requires_grad_()]

        def block(hidden, weight):
            linear = SF.linear_unlikelihood(hidden, weight, targets)
            return SF.scale_grad(F.linear(hidden, weight), targets, inplace=True) + linear

        loss = checkpoint(block, *head, use_reentrant=reentrant) if checkpointed else block(*head)
        (loss * 3).backward()
        grads.append([x.grad for x in head])
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
