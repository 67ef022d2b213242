"""The modules hold options and nothing else: what they compute is what the functions compute."""

import copy
import pickle

import pytest
import torch

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad import functional as SF
from scalegrad.gamma import Cosine, RewardRepetition
from scalegrad.ops import sparse
from scalegrad.sets import Ids, NgramRepeat, Seen
from tests.calls import OBJECTIVES, function

TARGETS = torch.tensor([[0, 1, 0, 3], [4, -100, 4, 2]])
MODULES = {"scale_grad": ScaleGradLoss, "unlikelihood": UnlikelihoodLoss}
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@both_objectives
def test_a_module_is_its_function(objective):
    options = {"discourage": Seen(window=3) | Ids([4]), "label_smoothing": 0.1, "softcap": 5.0, "reduction": "none"}
    data = {
        "context": torch.tensor([[1, 0, 1, 2], [3, 3, -1, 4]]),
        "source": torch.tensor([[2], [-1]]),
        "segments": torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]]),
    }
    module = MODULES[objective](0.4, **options)
    logits, hidden, weight, bias = random(2, 4, 5), random(2, 4, 3), random(5, 3), random(5, seed=1)
    assert torch.equal(
        module(logits, TARGETS, **data), function(objective, "logits")(logits, TARGETS, 0.4, **data, **options)
    )
    linear = function(objective, "linear")(hidden, weight, TARGETS, 0.4, bias=bias, **data, **options)
    assert torch.equal(module.linear(hidden, weight, TARGETS, bias=bias, **data), linear)


@both_objectives
def test_defaults_are_the_papers(objective):
    strength = {"scale_grad": 0.2, "unlikelihood": 1.0}[objective]
    logits = random(2, 4, 5)
    expected = function(objective, "logits")(
        logits, TARGETS, strength, discourage=Seen(), reduction="mean", ignore_index=-100
    )
    assert torch.equal(MODULES[objective]()(logits, TARGETS), expected)
    assert torch.equal(function(objective, "logits")(logits, TARGETS), expected)


@both_objectives
def test_num_items_and_inplace_are_given_with_the_call(objective):
    module = MODULES[objective]()
    leaf = random(2, 4, 5).requires_grad_()
    logits = leaf * 1
    loss = module(logits, TARGETS, num_items=14, inplace=True)
    assert loss.item() == pytest.approx(module(leaf, TARGETS).item() / 2, rel=1e-6)  # seven targets are kept
    assert not torch.equal(logits, leaf)  # overwritten


@pytest.mark.parametrize(
    "module",
    [
        ScaleGradLoss(),
        ScaleGradLoss(0.3, discourage=NgramRepeat(2, exempt=[1]), reduction="sum"),
        ScaleGradLoss(Cosine(1.0, 0.2, steps=10)),
        ScaleGradLoss(RewardRepetition(2.0), discourage=~Seen() & Ids([1, 2])),
        ScaleGradLoss(torch.tensor(0.5)),
        UnlikelihoodLoss(0.5, discourage=Seen(window=4), label_smoothing=0.1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_copies_are_equal(module, copied):
    if isinstance(module, ScaleGradLoss):
        module.step = 3
    again = copied(module)
    logits = random(2, 4, 5)
    assert torch.equal(again(logits, TARGETS), module(logits, TARGETS))
    assert repr(again) == repr(module)
    assert again.options == module.options


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (ScaleGradLoss(), "ScaleGradLoss(gamma=0.2)"),
        (UnlikelihoodLoss(), "UnlikelihoodLoss(alpha=1.0)"),
        (
            ScaleGradLoss(0.5, discourage=Seen(window=9, exempt=[2]), softcap=30.0, return_parts=True),
            "ScaleGradLoss(gamma=0.5, discourage=Seen(exempt=(2,), window=9), softcap=30.0, return_parts=True)",
        ),
        (
            ScaleGradLoss(Cosine(1.0, 0.2, steps=10)),
            "ScaleGradLoss(gamma=Cosine(start=1.0, stop=0.2, steps=10, delay=0))",
        ),
        (
            UnlikelihoodLoss(2, discourage=Ids([3]) | ~Seen(), reduction="sum"),
            "UnlikelihoodLoss(alpha=2.0, discourage=(Ids(ids=(3,)) | ~Seen()), reduction='sum')",
        ),
    ],
)
def test_a_module_prints_what_was_chosen(module, text):
    assert repr(module) == text


def test_a_module_adds_nothing_to_a_checkpoint():
    model = torch.nn.ModuleDict({"head": torch.nn.Linear(3, 5), "loss": ScaleGradLoss(torch.tensor(0.5))})
    assert list(model["loss"].state_dict()) == []
    assert list(model["loss"].parameters()) == []
    assert sorted(model.state_dict()) == ["head.bias", "head.weight"]


@both_objectives
def test_parts_cost_no_extra_pass(objective, monkeypatch):
    """p = (1/8, 1/4, 1/8, 1/2) at every step; after 0 and 1, π = 3/8."""
    calls = []
    fill = sparse.fill
    monkeypatch.setattr(sparse, "fill", lambda *arguments: calls.append(1) or fill(*arguments))
    logits = torch.tensor([1.0, 2.0, 1.0, 4.0]).log().expand(1, 4, 4).clone().requires_grad_()
    module = MODULES[objective](return_parts=True)
    loss, parts = module(logits, torch.tensor([[0, 1, 0, -100]]))
    assert len(calls) == 1
    assert isinstance(parts, SF.Parts)
    assert parts.nll[0].exp().tolist() == pytest.approx([8, 4, 8, 1])
    assert parts.seen_mass[0].tolist() == pytest.approx([0, 1 / 8, 3 / 8, 0])
    assert parts.target_seen.tolist() == [[False, False, True, False]]
    assert not any(part.requires_grad for part in parts)
    loss.backward()
    plain = MODULES[objective]()
    assert loss.item() == plain(logits, torch.tensor([[0, 1, 0, -100]])).item()
