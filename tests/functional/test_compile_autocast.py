"""torch.compile makes one whole graph of every loss, and mixed precision loses no more than it must."""

import shutil

import pytest
import torch
from torch.nn import functional as F

from scalegrad import ScaleGradLoss, UnlikelihoodLoss, sets
from scalegrad import functional as SF
from scalegrad.ops import dispatch
from tests.calls import FAST_WAYS, FOUR, OBJECTIVES, function, run

TARGETS = torch.tensor([[0, 1, 0, -100, 3], [4, 4, 2, 1, 1]])
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler calls what torch deprecates
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def random(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


def compiled(call, backend="aot_eager", **options):
    """One graph or an error. `aot_eager` traces forward and backward as the default does, and generates no code."""
    return torch.compile(call, fullgraph=True, backend=backend, **options)


def same(call, inputs, backend="aot_eager"):
    """Loss and gradients of the compiled call are those of the plain one."""
    results = []
    for run_it in (compiled(call, backend), call):
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        loss = run_it(*leaves)
        loss = loss[0] if isinstance(loss, tuple) else loss
        (loss * 2).sum().backward()
        results.append([loss.detach(), *(leaf.grad for leaf in leaves)])
    for actual, expected in zip(*results, strict=True):
        assert (actual - expected).abs().max() <= 1e-6


# ---- torch.compile ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(("objective", "form"), FOUR)
def test_the_four_compile_whole(objective, form, reduction):
    head = [random(2, 5, 7)] if form == "logits" else [random(2, 5, 3), random(7, 3)]
    same(lambda *head: function(objective, form)(*head, TARGETS, reduction=reduction), head)


CALLS = {
    "in place": {"inplace": True},
    "parts": {"return_parts": True},
    "tensor γ": {"gamma": torch.full((2, 5), 0.3)},
    "callable γ": {"gamma": lambda position, entropy, mass: 1 - mass / 2},
    "combined sets": {"discourage": sets.Seen(window=2) & ~sets.Ids([3]) | sets.NgramRepeat(2, exempt=[0])},
    "complement": {"discourage": ~sets.Seen()},
    "ids": {"discourage": sets.Ids([1, 4])},
    "window, n-grams": {"discourage": sets.Seen(window=3) | sets.NgramRepeat(2)},
    "γ = 1": {"gamma": 1.0},
    "data": {
        "context": TARGETS.roll(1, 1),
        "source": torch.tensor([[1], [2]]),
        "segments": torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]]),
        "num_items": torch.tensor(4),
    },
    "head": {"softcap": 5.0, "logit_scale": 0.5, "label_smoothing": 0.1},
}


@pytest.mark.parametrize("options", CALLS.values(), ids=CALLS.keys())
def test_every_option_compiles(options):
    same(lambda x: SF.scale_grad(x * 1.5, TARGETS, **options), [random(2, 5, 7)])


def test_a_callable_gamma_compiles_on_hidden_states():
    gamma = CALLS["callable γ"]["gamma"]
    same(lambda h, w: SF.linear_scale_grad(h, w, TARGETS, gamma), [random(2, 5, 3), random(7, 3)])


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler on this machine")
@pytest.mark.parametrize("module", [ScaleGradLoss(0.3), UnlikelihoodLoss(0.5)])
def test_a_model_with_its_loss_compiles_to_machine_code(module):
    """The default backend; embeddings tied to the output layer; one loss from logits and one from hidden states."""
    inputs = TARGETS.clamp(min=0).roll(1, 1)

    def step(table, mixer):
        hidden = torch.tanh(F.embedding(inputs, table) @ mixer)
        return module(F.linear(hidden, table), TARGETS) + module.linear(hidden, table, TARGETS)

    same(step, [random(7, 4), random(4, 4, seed=1)], backend="inductor")


@both_objectives
def test_one_graph_serves_every_shape(objective):
    """Sequences of any length and number, compiled once."""
    graphs = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    call = torch.compile(
        lambda logits, targets: function(objective, "logits")(logits, targets),
        fullgraph=True,
        dynamic=True,
        backend=graphs,
    )
    made = []
    for shape in ((2, 5), (3, 9), (4, 6), (2, 17)):
        targets = torch.randint(0, 7, shape, generator=torch.Generator().manual_seed(1))
        logits = random(*shape, 7).requires_grad_()
        call(logits, targets).backward()
        plain = logits.detach().clone().requires_grad_()
        function(objective, "logits")(plain, targets).backward()
        assert (logits.grad - plain.grad).abs().max() <= 1e-7
        made.append(graphs.frame_count)
    assert made[0] > 0
    assert len(set(made)) == 1  # none was made after the first call


def test_in_place_corrupts_nothing_when_compiled():
    """The leaf keeps its values, and so does what an earlier operation saved: a compiled graph plans its own memory."""
    leaf = random(2, 5, 7).requires_grad_()
    compiled(lambda x: SF.scale_grad(x + 0, TARGETS, inplace=True))(leaf).backward()
    assert torch.equal(leaf, random(2, 5, 7))
    same = leaf.detach().clone().requires_grad_()
    compiled(lambda x: SF.scale_grad(x.exp(), TARGETS, inplace=True))(same).backward()
    plain = leaf.detach().clone().requires_grad_()
    SF.scale_grad(plain.exp(), TARGETS).backward()
    assert (same.grad - plain.grad).abs().max() <= 1e-7


def test_a_fall_to_the_reference_warns_while_compiling(monkeypatch):
    class Even(sets.TokenSet):
        def mask(self, history):
            return (torch.arange(history.vocab) % 2 == 0).expand(history.arrivals.numel(), -1)

    monkeypatch.setattr(dispatch, "_warned", set())
    even = Even()
    with pytest.warns(UserWarning, match="the reference implementation runs, slow and dense"):
        same(lambda x: SF.scale_grad(x, TARGETS, discourage=even), [random(2, 5, 7)])


def test_operators_keep_their_promises():
    """Nothing is mutated or aliased that is not declared, and the shapes a tracer is told are the real ones."""
    seen = {}
    operators = {
        "rows": lambda: SF.scale_grad(random(2, 5, 7).requires_grad_(), TARGETS),
        "rows_": lambda: SF.scale_grad(random(2, 5, 7).requires_grad_() * 1, TARGETS, inplace=True),
        "linear_rows": lambda: SF.linear_unlikelihood(random(2, 5, 3), random(7, 3).requires_grad_(), TARGETS),
        "statistics": lambda: SF.linear_scale_grad(random(2, 5, 3), random(7, 3), TARGETS, lambda p, h, m: 1 - m / 2),
    }

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace == "scalegrad":
                copies = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.detach().clone(), args)
                seen[func._opname] = (func, copies, kwargs or {})
            return func(*args, **(kwargs or {}))

    for call in operators.values():
        with Watch():
            call()
    assert set(seen) == set(operators)
    for func, args, kwargs in seen.values():
        torch.library.opcheck(func, args, kwargs, test_utils=("test_schema", "test_faketensor"))


# ---- mixed precision -------------------------------------------------------------------------------------------------


@both_objectives
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(objective, dtype):
    """Logits come in half precision; the loss is float32, exact for those logits; parameters get float32 gradients."""
    hidden, weight = random(2, 5, 3).requires_grad_(), random(7, 3).requires_grad_()
    with torch.autocast("cpu", dtype=dtype):
        logits = F.linear(hidden, weight)
        loss = function(objective, "logits")(logits, TARGETS)
        fused = function(objective, "linear")(hidden, weight, TARGETS)
    exact = function(objective, "logits")(logits.detach().double(), TARGETS, impl="reference")
    assert logits.dtype == dtype
    assert loss.dtype == fused.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-6)
    assert fused.item() == pytest.approx(exact.item(), rel=1e-6)

    grads = [torch.autograd.grad(value, (hidden, weight), retain_graph=True) for value in (loss, fused)]
    leaves = [x.detach().to(dtype).double().requires_grad_() for x in (hidden, weight)]
    truth = torch.autograd.grad(function(objective, "logits")(F.linear(*leaves), TARGETS), leaves)
    for ours in grads:
        for grad, true in zip(ours, truth, strict=True):
            assert grad.dtype == torch.float32
            assert (grad - true).norm() <= 4 * torch.finfo(dtype).eps * true.norm()


@both_objectives
def test_autocast_leaves_float64_alone(objective):
    hidden, weight = random(2, 5, 3, dtype=torch.float64), random(7, 3, dtype=torch.float64)
    expected = function(objective, "linear")(hidden, weight, TARGETS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = function(objective, "linear")(hidden, weight, TARGETS)
    assert loss.dtype == torch.float64
    assert torch.equal(loss, expected)


@both_objectives
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_backward_inside_autocast(objective, reduction):
    """Not recommended by torch, and harmless here: the gradients are those made outside."""
    grads = []
    for inside in (True, False):
        head = [random(2, 5, 3).requires_grad_(), random(7, 3).requires_grad_()]
        loss = function(objective, "linear")(*head, TARGETS, reduction=reduction).sum()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=inside):
            loss.backward()
        grads.append([x.grad for x in head])
    for inside, outside in zip(*grads, strict=True):
        assert torch.equal(inside, outside)


@pytest.mark.parametrize("way", FAST_WAYS, ids="-".join)
@both_objectives
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("keep", [False, True])
def test_a_gradient_scaler_reaches_float16_gradients_before_they_vanish(objective, way, reduction, keep):
    """A mean over a million items is below float16's smallest number; times 65,536 it is not. Nor is a sum infinite."""
    options = {"reduction": reduction, "num_items": 10**6} if reduction == "mean" else {"reduction": reduction}
    scale = 65536.0 if reduction == "mean" else 32.0
    logits = random(2, 5, 7).half().requires_grad_()
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    scaler.scale(run(objective, way, logits, TARGETS, **options)).backward(retain_graph=keep)
    exact = logits.detach().double().requires_grad_()
    run(objective, way, exact, TARGETS, **options).mul(scale).backward()
    assert logits.grad.dtype == torch.float16
    assert (logits.grad.double() - exact.grad).norm() <= 2e-3 * exact.grad.norm()
    assert (logits.grad != 0).sum() == 9 * 7  # nine targets are kept, and none of their gradients vanished
