"""Calls that look right and mean something else: refused in one sentence that shows the right call."""

import inspect
import math
import sys

import pytest
import torch

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad import functional as SF
from scalegrad.functional import inputs, losses
from tests.calls import FOUR, WAYS, function, gradient, run

MODULES = {"scale_grad": ScaleGradLoss, "unlikelihood": UnlikelihoodLoss}
TARGETS = torch.tensor([[0, 1, 0], [3, 0, -100]])
all_four = pytest.mark.parametrize(("objective", "form"), FOUR)
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)


def random(*shape, **kind):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), **kind)


def head(form, *lead):
    """Logits, or hidden states and a weight, over 5 tokens."""
    return (random(*lead, 5),) if form == "logits" else (random(*lead, 4), random(5, 4))


def module_call(objective, form):
    module = MODULES[objective]()
    return module if form == "logits" else module.linear


# ---- flattened batches -----------------------------------------------------------------------------------------------


@all_four
def test_flattened_targets_are_refused(objective, form):
    """`logits.view(-1, V), labels.view(-1)`, as cross-entropy is called, would be one long sequence."""
    values, *weight = head(form, 2, 3)
    for call in (function(objective, form), module_call(objective, form)):
        with pytest.raises(ValueError, match=r"targets.*\[6\].*\[None\], targets\[None\].*\[B, T, .\].*segments"):
            call(values.flatten(0, 1), *weight, TARGETS.flatten())


@all_four
def test_flattened_targets_with_segments_are_the_batch(objective, form):
    """Segment ids say where a sequence ends, so nothing is ambiguous."""
    values, *weight = head(form, 2, 3)
    segments = torch.tensor([0, 0, 0, 1, 1, 1])
    for call in (function(objective, form), module_call(objective, form)):
        flat = call(values.flatten(0, 1), *weight, TARGETS.flatten(), segments=segments)
        assert flat.item() == pytest.approx(call(values, *weight, TARGETS).item(), rel=1e-6)
        one = call(values[:1], *weight, TARGETS[:1])
        assert call(values[0], *weight, TARGETS[0], segments=segments[:3]).item() == pytest.approx(one.item(), rel=1e-6)


# ---- misspelt options ------------------------------------------------------------------------------------------------


OWNERS = (ScaleGradLoss, UnlikelihoodLoss, SF.linear_scale_grad, SF.linear_unlikelihood, SF.scale_grad, SF.unlikelihood)


@pytest.mark.parametrize(
    ("call", "wrong", "right"),
    [
        (lambda: ScaleGradLoss(gama=0.2), "gama", "gamma"),
        (lambda: UnlikelihoodLoss(alfa=0.2), "alfa", "alpha"),
        (lambda: ScaleGradLoss(0.2, labelsmoothing=0.1), "labelsmoothing", "label_smoothing"),
        (lambda: SF.scale_grad(random(2, 3, 5), TARGETS, reducton="sum"), "reducton", "reduction"),
        (lambda: SF.unlikelihood(random(2, 3, 5), TARGETS, contxt=TARGETS), "contxt", "context"),
        (lambda: SF.linear_scale_grad(*head("linear", 2, 3), TARGETS, bais=None), "bais", "bias"),
        (lambda: SF.linear_unlikelihood(*head("linear", 2, 3), TARGETS, numitems=3), "numitems", "num_items"),
    ],
)
def test_a_misspelt_option_names_what_was_called(call, wrong, right):
    with pytest.raises(TypeError, match=f"'{wrong}'") as error:
        call()
    assert "Options" not in str(error.value)
    owner = next(owner for owner in OWNERS if owner.__name__ in str(error.value))
    assert right in inspect.signature(owner).parameters, "every keyword stands in the signature"


# ---- num_items -------------------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("objective", MODULES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("num_items", [0, 0.0, torch.tensor(0), torch.tensor(0.0)], ids=repr)
def test_num_items_of_zero_is_refused_while_targets_are_left(objective, way, dtype, num_items):
    """It gave the undivided sum."""
    with pytest.raises(ValueError, match=r"num_items.* 0"):
        run(objective, way, random(2, 3, 5).to(dtype), TARGETS, num_items=num_items)


@every_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("num_items", [0, torch.tensor(0)], ids=repr)
def test_num_items_of_zero_without_targets_is_a_connected_zero(way, dtype, num_items):
    loss, grad = gradient(
        "scale_grad", way, random(2, 3, 5).to(dtype), torch.full_like(TARGETS, -100), num_items=num_items
    )
    assert loss.item() == 0
    assert not grad.any()


@every_way
@pytest.mark.parametrize("num_items", [0.25, torch.tensor(0.25)], ids=repr)
def test_a_fraction_of_an_item_divides(way, num_items):
    """A share of a batch over many workers: it was taken for 1."""
    total = run("scale_grad", way, random(2, 3, 5), TARGETS, reduction="sum")
    loss = run("scale_grad", way, random(2, 3, 5), TARGETS, num_items=num_items)
    assert loss.item() == pytest.approx(4 * total.item(), rel=1e-6)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_without_a_look_num_items_of_zero_gives_infinity(way, dtype, monkeypatch):
    """As on a GPU, where no value may be looked at: a negative number gives infinity, too, and a fraction divides."""
    for module in (inputs, losses):
        monkeypatch.setattr(module, "may_sync", lambda head, options: False)
    logits, nothing = random(2, 3, 5).to(dtype), torch.full_like(TARGETS, -100)
    for num_items in (torch.tensor(0), torch.tensor(0.0), torch.tensor(-2)):
        assert gradient("scale_grad", way, logits, TARGETS, num_items=num_items)[0].item() == math.inf
        loss, grad = gradient("scale_grad", way, logits, nothing, num_items=num_items)
        assert loss.item() == 0
        assert not grad.any()
    total = run("scale_grad", way, logits, TARGETS, reduction="sum")
    loss = run("scale_grad", way, logits, TARGETS, num_items=torch.tensor(0.5))
    assert loss.item() == pytest.approx(2 * total.item(), rel=1e-6)
    with pytest.raises(ValueError, match=r"num_items.* 0"):  # an int is refused on any device
        run("scale_grad", way, logits, TARGETS, num_items=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler calls what torch deprecates
@pytest.mark.parametrize("num_items", [0, torch.tensor(0)], ids=repr)
def test_compiled_num_items_of_zero_gives_infinity(num_items):
    torch._dynamo.reset()
    call = torch.compile(
        lambda logits, targets: SF.scale_grad(logits, targets, num_items=num_items), fullgraph=True, backend="aot_eager"
    )
    logits = random(2, 3, 5).requires_grad_()
    assert call(logits, TARGETS).item() == math.inf
    loss = call(logits, torch.full_like(TARGETS, -100))
    loss.backward()
    assert loss.item() == 0
    assert not logits.grad.any()


# ---- tensors without values of their own -----------------------------------------------------------------------------


@all_four
def test_meta_tensors_are_refused(objective, form):
    values, *weight = (part.to("meta") for part in head(form, 2, 3))
    name = "logits" if form == "logits" else "hidden"
    with pytest.raises(ValueError, match=f"{name}.*meta"):
        function(objective, form)(values, *weight, TARGETS.to("meta"))
    if weight:  # a model whose weights are still to be loaded
        with pytest.raises(ValueError, match=r"weight.*meta"):
            function(objective, form)(values.new_zeros(2, 3, 4, device="cpu"), *weight, TARGETS)
    with pytest.raises(ValueError, match=r"num_items.*meta"):
        function(objective, form)(*head(form, 2, 3), TARGETS, num_items=torch.tensor(3, device="meta"))


@pytest.fixture(scope="module")
def as_dtensor(tmp_path_factory):
    """Puts a tensor on a mesh of one device."""
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor

    store = f"file://{tmp_path_factory.mktemp('store') / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    yield lambda tensor: distribute_tensor(tensor, mesh, [Replicate()])
    distributed.destroy_process_group()


@all_four
def test_dtensors_are_refused(objective, form, as_dtensor):
    """Torch's own message speaks of mixed operators."""
    values, *weight = head(form, 2, 3)
    name = "logits" if form == "logits" else "hidden"
    call = function(objective, form)
    wrong = {
        name: lambda: call(as_dtensor(values), *map(as_dtensor, weight), as_dtensor(TARGETS)),
        "targets": lambda: call(values, *weight, as_dtensor(TARGETS)),
        "context": lambda: call(values, *weight, TARGETS, context=as_dtensor(TARGETS.clamp(min=0))),
        "num_items": lambda: call(values, *weight, TARGETS, num_items=as_dtensor(torch.tensor(3))),
    }
    if weight:
        wrong["weight"] = lambda: call(values, *map(as_dtensor, weight), TARGETS)
    if objective == "scale_grad":
        wrong["gamma"] = lambda: call(values, *weight, TARGETS, as_dtensor(torch.full((2, 3), 0.5)))
    for argument, refused in wrong.items():
        with pytest.raises(ValueError, match=rf"^{argument} .*DTensor.*full_tensor\(\)"):
            refused()
    assert call(as_dtensor(values).full_tensor(), *weight, TARGETS).isfinite()


def test_a_plain_call_loads_nothing_of_torch_distributed(monkeypatch):
    """The test for a DTensor must cost nothing: no import, and a look at the type alone."""
    for name in [name for name in sys.modules if name.startswith("torch.distributed.tensor")]:
        monkeypatch.delitem(sys.modules, name)
    SF.scale_grad(random(2, 3, 5), TARGETS)
    assert "torch.distributed.tensor" not in sys.modules
