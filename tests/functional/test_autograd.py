"""Gradients as a training loop meets them: kept graphs, several uses, scaling, odd layouts, tied weights."""

import pytest
import torch
from torch.nn import functional as F

from scalegrad import functional as SF
from scalegrad.ops import chunked, sparse
from tests.calls import FAST_WAYS, FOUR, OBJECTIVES, WAYS, function, gradient, run

TARGETS = torch.tensor([[0, 1, 0, 3], [4, -100, 4, 2]])
STRENGTH = {"scale_grad": 0.3, "unlikelihood": 0.7}
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)
every_fast_way = pytest.mark.parametrize("way", FAST_WAYS, ids="-".join)
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def random_logits(*shape, dtype=torch.float64, seed=0):
    shape = shape or (2, 4, 5)
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks and chunks even for tiny batches."""
    monkeypatch.setattr(sparse, "CPU_BLOCK", 15)
    monkeypatch.setattr(chunked, "CHUNK_ELEMENTS", 15)


# ---- derivatives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", ["reference", "fast"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("objective", "form"), FOUR)
def test_gradcheck(objective, form, reduction, impl):
    """Against finite differences; label smoothing, cap and scale included."""
    impl = {"reference": "reference", "fast": "sparse" if form == "logits" else "chunked"}[impl]
    settings = {"reduction": reduction, "impl": impl, "label_smoothing": 0.1, "softcap": 4.0, "logit_scale": 1.3}
    head = [random_logits()] if form == "logits" else [random_logits(2, 4, 3), random_logits(5, 3), random_logits(5)]
    head = [x.requires_grad_() for x in head]

    def loss(*head):
        bias = {} if form == "logits" else {"bias": head[2]}
        return function(objective, form)(*head[:2], TARGETS, STRENGTH[objective], **bias, **settings)

    assert torch.autograd.gradcheck(loss, head, atol=1e-7)


@pytest.mark.parametrize("form", ["logits", "linear"])
@both_objectives
def test_double_backward_of_the_reference(objective, form):
    logits = random_logits(1, 3, 4).requires_grad_()
    targets = torch.tensor([[0, 1, 0]])
    call = lambda logits: run(objective, (form, "reference"), logits, targets, STRENGTH[objective])  # noqa: E731
    assert torch.autograd.gradgradcheck(call, [logits])


@both_objectives
@every_fast_way
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_double_backward_of_a_fast_path_is_refused(objective, way, reduction):
    """A penalty on the gradient would otherwise count for nothing, in silence."""
    logits = random_logits().requires_grad_()
    loss = run(objective, way, logits, TARGETS, reduction=reduction).sum()
    with pytest.raises(
        RuntimeError, match="create_graph=True needs a second derivative, which only impl='reference' has"
    ):
        torch.autograd.grad(loss, logits, create_graph=True)


# ---- more than one use -----------------------------------------------------------------------------------------------


@every_way
@both_objectives
def test_two_losses_on_the_same_logits(objective, way):
    logits = random_logits()
    shared = logits.clone().requires_grad_()
    plain = F.cross_entropy(shared.flatten(0, 1), TARGETS.flatten())
    (run(objective, way, shared * 1.0, TARGETS, STRENGTH[objective]) + 0.5 * plain).backward()
    alone = logits.clone().requires_grad_()
    F.cross_entropy(alone.flatten(0, 1), TARGETS.flatten()).backward()
    _, expected = gradient(objective, way, logits, TARGETS, STRENGTH[objective])
    assert (shared.grad - (expected + 0.5 * alone.grad)).abs().max() < 1e-15


@every_way
def test_both_objectives_on_the_same_logits(way):
    logits = random_logits().requires_grad_()
    (run("scale_grad", way, logits, TARGETS) + run("unlikelihood", way, logits, TARGETS)).backward()
    separate = [gradient(objective, way, logits, TARGETS)[1] for objective in OBJECTIVES]
    assert (logits.grad - sum(separate)).abs().max() < 1e-15


@every_way
@both_objectives
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_kept_graph_gives_the_same_gradient_again(objective, way, reduction):
    logits = random_logits().requires_grad_()
    loss = 3 * run(objective, way, logits, TARGETS, reduction=reduction).sum()
    loss.backward(retain_graph=True)
    once = logits.grad.clone()
    loss.backward(retain_graph=True)
    assert (logits.grad - 2 * once).abs().max() < 1e-15
    loss.backward()
    assert (logits.grad - 3 * once).abs().max() < 1e-15
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


@every_way
@both_objectives
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("keep", [False, True])
def test_upstream_gradients_scale(objective, way, dtype, keep):
    logits = random_logits(dtype=dtype).requires_grad_()
    run(objective, way, logits, TARGETS).div(3).backward(retain_graph=keep)
    _, expected = gradient(objective, way, logits, TARGETS)
    assert logits.grad.dtype == dtype
    assert (logits.grad.double() - expected.double() / 3).norm() <= torch.finfo(dtype).eps * expected.double().norm()


@pytest.mark.parametrize("keep", [False, True])
def test_an_upstream_gradient_is_not_rounded_to_half_precision(keep):
    logits = random_logits(dtype=torch.bfloat16).requires_grad_()
    SF.scale_grad(logits, TARGETS).backward(torch.tensor(1 / 3), retain_graph=keep)
    _, expected = gradient("scale_grad", ("logits", "sparse"), logits, TARGETS)
    assert torch.equal(logits.grad, (expected.float() * torch.tensor(1 / 3)).bfloat16())
    assert not torch.equal(logits.grad, expected * torch.tensor(1 / 3, dtype=torch.bfloat16))


@every_way
@both_objectives
def test_every_row_has_its_own_upstream_gradient(objective, way):
    logits = random_logits()
    upstream = random_logits(2, 4, seed=1)
    _, expected = gradient(objective, way, logits, TARGETS, reduction="none")
    logits.requires_grad_()
    run(objective, way, logits, TARGETS, reduction="none").backward(upstream)
    assert (logits.grad - upstream[..., None] * expected).abs().max() < 1e-15


@every_way
@both_objectives
def test_upstream_nan_of_an_ignored_target_stops_there(objective, way):
    """`where(kept, loss / length, 0)` sends 0/0 back to padding."""
    upstream = torch.ones(2, 4, dtype=torch.float64)
    upstream[1, 1] = float("nan")
    logits = random_logits().requires_grad_()
    run(objective, way, logits, TARGETS, reduction="none").backward(upstream)
    _, expected = gradient(objective, way, logits, TARGETS, reduction="none")
    assert torch.equal(logits.grad, expected)


# ---- no gradient -----------------------------------------------------------------------------------------------------


@every_way
@both_objectives
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(objective, way, mode, monkeypatch):
    """The same loss, and none of the work: nothing asks for the gradient of a block."""
    logits = random_logits().requires_grad_()
    expected = run(objective, way, logits, TARGETS)
    wanted = []
    fill = sparse.fill
    monkeypatch.setattr(sparse, "fill", lambda o, grad, *rest: wanted.append(grad is not None) or fill(o, grad, *rest))
    with mode():
        loss = run(objective, way, logits, TARGETS)
    assert not loss.requires_grad
    assert loss.item() == expected.item()
    assert not any(wanted)
    assert bool(wanted) == (way[1] != "reference")


@both_objectives
def test_frozen_inputs_get_no_gradient(objective):
    """A frozen body, a frozen head: only what is asked for is made."""
    for frozen in ("hidden", "weight"):
        head = {"hidden": random_logits(2, 4, 3), "weight": random_logits(5, 3)}
        trained = next(x.requires_grad_() for name, x in head.items() if name != frozen)
        function(objective, "linear")(targets=TARGETS, **head).backward()
        both = {name: x.detach().clone().requires_grad_() for name, x in head.items()}
        function(objective, "linear")(targets=TARGETS, **both).backward()
        assert head[frozen].grad is None
        other = "weight" if frozen == "hidden" else "hidden"
        assert torch.equal(trained.grad, both[other].grad)


# ---- layouts, shapes, dtypes -----------------------------------------------------------------------------------------


@both_objectives
@pytest.mark.parametrize(("way", "inplace"), [*((way, False) for way in WAYS), (("logits", "sparse"), True)])
def test_any_layout(objective, way, inplace):
    """Transposed, sliced and expanded logits give what their contiguous copies give."""
    option = {"inplace": True} if inplace else {}
    layouts = {
        "time first": (random_logits(4, 2, 5), lambda x: x.transpose(0, 1)),
        "vocabulary first": (random_logits(5, 2, 4), lambda x: x.permute(1, 2, 0)),
        "every other": (random_logits(2, 8, 10), lambda x: x[:, ::2, ::2]),
        "shifted": (random_logits(2, 5, 5), lambda x: x[:, :-1]),
        "one for all rows": (random_logits(1, 4, 5), lambda x: x.expand(2, 4, 5)),
        "one for all steps": (random_logits(2, 1, 5), lambda x: x.expand(2, 4, 5)),
        "one for all tokens": (random_logits(2, 4, 1), lambda x: x.expand(2, 4, 5)),
    }
    for name, (base, layout) in layouts.items():
        base = base.requires_grad_()
        loss = run(objective, way, layout(base * 1), TARGETS, **option)
        loss.backward()
        copy = base.detach().clone().requires_grad_()
        expected = run(objective, way, layout(copy).contiguous(), TARGETS)
        expected.backward()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-14), name
        assert (base.grad - copy.grad).abs().max() < 1e-15, name


@every_way
@both_objectives
def test_shapes_of_one_sequence_and_of_many_dimensions(objective, way):
    logits = random_logits()
    losses, grads = gradient(objective, way, logits, TARGETS, reduction="none")
    for row in range(2):
        one = {"segments": torch.zeros_like(TARGETS[row]), "reduction": "none"}  # 1-D targets need segments
        loss, grad = gradient(objective, way, logits[row], TARGETS[row], **one)
        assert torch.allclose(loss, losses[row], atol=1e-15)
        assert torch.allclose(grad, grads[row], atol=1e-15)
    loss, grad = gradient(objective, way, logits.view(1, 2, 1, 4, 5), TARGETS.view(1, 2, 1, 4), reduction="none")
    assert loss.shape == (1, 2, 1, 4)
    assert torch.allclose(loss.view(2, 4), losses, atol=1e-15)
    assert torch.allclose(grad.view(2, 4, 5), grads, atol=1e-15)


@every_way
@both_objectives
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8])
def test_any_integers_are_targets(objective, way, dtype):
    expected = gradient(objective, way, random_logits(), TARGETS)
    actual = gradient(objective, way, random_logits(), TARGETS.to(dtype))
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_narrow_integers_and_a_wide_vocabulary(dtype):
    """50,257 does not fit into them; the ids do."""
    targets = torch.tensor([[100, 7, 100]])
    logits = torch.zeros(1, 3, 50257)
    assert SF.scale_grad(logits, targets.to(dtype)).item() == SF.scale_grad(logits, targets).item()


# ---- the output layer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", ["reference", "chunked"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@both_objectives
def test_tied_weights_and_bias(objective, impl, reduction):
    """One tensor as embedding and output layer: both gradients arrive, as through explicit logits."""
    inputs = TARGETS.clamp(min=0).roll(1, 1)
    grads = []
    for form in ("linear", "logits"):
        table, bias = random_logits(5, 3).requires_grad_(), random_logits(5, seed=1).requires_grad_()
        hidden = torch.tanh(F.embedding(inputs, table))
        if form == "linear":
            loss = function(objective, form)(hidden, table, TARGETS, bias=bias, reduction=reduction, impl=impl)
        else:
            loss = function(objective, form)(F.linear(hidden, table, bias), TARGETS, reduction=reduction, impl="sparse")
        loss.sum().backward()
        grads.append((loss.sum().item(), table.grad, bias.grad))
    assert grads[0][0] == pytest.approx(grads[1][0], rel=1e-14)
    assert (grads[0][1] - grads[1][1]).abs().max() < 1e-14
    assert (grads[0][2] - grads[1][2]).abs().max() < 1e-14


@both_objectives
@pytest.mark.parametrize("kept", [[(0, 1), (0, 2)], [(1, 0), (1, 3)], [(0, 3), (1, 0)]])
def test_as_many_kept_targets_as_sequences(objective, kept):
    """The rows of one list must not be mistaken for lists of their own."""
    targets = torch.full((2, 4), -100)
    for place in kept:
        targets[place] = 1
    context = torch.tensor([[0, 1, 2, 3], [4, 4, 4, 4]])
    for reduction in ("mean", "none"):
        call = (random_logits(), targets)
        loss, grad = gradient(objective, ("linear", "chunked"), *call, context=context, reduction=reduction)
        expected, exact = gradient(objective, ("logits", "reference"), *call, context=context, reduction=reduction)
        assert (loss - expected).abs().max() < 1e-14
        assert (grad - exact).abs().max() < 1e-14
