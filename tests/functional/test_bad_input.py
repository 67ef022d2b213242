"""Every mistake gets one sentence that names the argument, what it was and what it may be."""

import math
import re
import warnings
from dataclasses import dataclass

import pytest
import torch

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad import functional as SF
from scalegrad.gamma import Constant, Cosine, Linear, RewardRepetition
from scalegrad.ops import dispatch
from scalegrad.sets import Ids, NgramRepeat, Seen, TokenSet
from tests.calls import FAST_WAYS, FOUR, OBJECTIVES, WAYS, function, gradient, run

LOGITS, HIDDEN, WEIGHT = torch.zeros(2, 3, 5), torch.zeros(2, 3, 4), torch.zeros(5, 4)
TARGETS = torch.tensor([[0, 1, 2], [3, 4, -100]])
NAN = math.nan
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def ids(*shape, value=0, **kind):
    return torch.full(shape, value, **{"dtype": torch.int64, **kind})


# ---- what all four share: (arguments in place of good ones, the sentence) --------------------------------------------

SHARED = [
    ({"targets": [[0, 1, 2]]}, "targets must be a tensor of token ids, not list"),
    ({"targets": TARGETS.float()}, "targets must be a tensor of integers, not torch.float32"),
    ({"targets": TARGETS > 0}, "targets must be a tensor of integers, not torch.bool"),
    ({"targets": TARGETS.to("meta")}, "targets is on meta and {head} on cpu: they must be on one device"),
    (
        {"targets": ids(2, 4)},
        "targets must have the shape of {head} without its last dimension, [2, 3], not [2, 4]",
    ),
    ({"targets": ids(6)}, "targets must have the shape of {head} without its last dimension, [2, 3], not [6]"),
    (
        {"targets": torch.tensor([[0, 1, 2], [3, 5, -100]])},
        "targets must be in [0, 5) or ignore_index=-100, not 5 at [1, 1]",
    ),
    (
        {"targets": torch.tensor([[0, -1, 2], [3, 9, -100]])},
        "targets must be in [0, 5) or ignore_index=-100, not -1 at [0, 1]",
    ),
    ({"ignore_index": 0}, "targets must be in [0, 5) or ignore_index=0, not -100 at [1, 2]"),
    ({"ignore_index": 0.5}, "ignore_index must be a whole number, not 0.5"),
    ({"context": [[0]]}, "context must be a tensor of integers, not list"),
    ({"context": LOGITS}, "context must be a tensor of integers, not torch.float32"),
    ({"context": ids(2, 2)}, "context must have the targets' shape [2, 3], not [2, 2]"),
    ({"context": ids(3)}, "context must have the targets' shape [2, 3], not [3]"),
    ({"context": ids(2, 3, value=5)}, "context must be in [0, 5) or negative, not 5 at [0, 0]"),
    ({"context": ids(2, 3, device="meta")}, "context is on meta and targets on cpu: they must be on one device"),
    ({"segments": LOGITS}, "segments must be a tensor of integers, not torch.float32"),
    ({"segments": ids(3)}, "segments must have the targets' shape [2, 3], not [3]"),
    ({"segments": ids(2, 3, device="meta")}, "segments is on meta and targets on cpu: they must be on one device"),
    ({"source": LOGITS}, "source must be a tensor of integers, not torch.float32"),
    ({"source": ids(4)}, "source must have the shape [2, 'S'], not [4]"),
    ({"source": ids(3, 4)}, "source must have the shape [2, 'S'], not [3, 4]"),
    ({"source": torch.tensor([[-7, 4], [0, 77]])}, "source must be in [0, 5) or negative, not 77 at [1, 1]"),
    ({"source": ids(2, 4, device="meta")}, "source is on meta and targets on cpu: they must be on one device"),
    ({"num_items": -1}, "num_items must be a finite number from 0 or a 0-d tensor, not -1"),
    ({"num_items": True}, "num_items must be a finite number from 0 or a 0-d tensor, not True"),
    ({"num_items": "5"}, "num_items must be a finite number from 0 or a 0-d tensor, not '5'"),
    ({"num_items": NAN}, "num_items must be a finite number from 0 or a 0-d tensor, not nan"),
    ({"num_items": torch.tensor(-3)}, "num_items must be a finite number from 0 or a 0-d tensor, not -3"),
    ({"num_items": torch.ones(2)}, "num_items must be a number or a 0-d tensor, not of shape [2]"),
    (
        {"num_items": 5, "reduction": "sum"},
        "num_items is what reduction='mean' divides by; it has no meaning with reduction='sum'",
    ),
    ({"reduction": "average"}, "reduction must be 'mean', 'sum' or 'none', not 'average'"),
    ({"label_smoothing": 1.5}, "label_smoothing must be a number in [0, 1], not 1.5"),
    ({"label_smoothing": NAN}, "label_smoothing must be a number in [0, 1], not nan"),
    ({"label_smoothing": "0.1"}, "label_smoothing must be a number in [0, 1], not '0.1'"),
    ({"softcap": 0.0}, "softcap must be a positive number or None, not 0.0"),
    ({"logit_scale": -1.0}, "logit_scale must be a positive number or None, not -1.0"),
    ({"logit_scale": math.inf}, "logit_scale must be a positive number or None, not inf"),
    ({"discourage": [1, 2]}, "discourage must be a token set such as sets.Seen(), not [1, 2]"),
    ({"discourage": Ids([1, 5])}, "ids must be below the vocabulary's size 5, not 5"),
    ({"impl": "fast"}, "impl must be one of auto, reference, {fast}, triton, not 'fast'"),
    (
        {"impl": "triton"},
        "impl='triton' cannot run this: there are no kernels for cpu; use '{fast}' or 'auto'",
    ),
]


def refused(call, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        call()


@pytest.mark.parametrize(("objective", "form"), FOUR)
@pytest.mark.parametrize(("wrong", "sentence"), SHARED, ids=lambda value: value if isinstance(value, str) else "")
def test_bad_input_of_all_four(objective, form, wrong, sentence):
    arguments = {"targets": TARGETS, **wrong}
    targets = arguments.pop("targets")
    head = (LOGITS,) if form == "logits" else (HIDDEN, WEIGHT)
    names = {"head": "logits", "fast": "sparse"} if form == "logits" else {"head": "hidden", "fast": "chunked"}
    for name, value in names.items():
        sentence = sentence.replace(f"{{{name}}}", value)
    refused(lambda: function(objective, form)(*head, targets, **arguments), sentence)


@both_objectives
@pytest.mark.parametrize(
    ("logits", "targets", "sentence"),
    [
        ([1.0], TARGETS, "logits must be a floating-point tensor, not list"),
        (LOGITS.long(), TARGETS, "logits must be a floating-point tensor, not torch.int64"),
        (torch.zeros(5), torch.tensor(0), "logits must have at least 2 dimensions, not the shape [5]"),
        (
            torch.zeros(2, 3, 0),
            TARGETS,
            "logits must have a vocabulary of at least one token, not the shape [2, 3, 0]",
        ),
    ],
)
def test_bad_logits(objective, logits, targets, sentence):
    refused(lambda: function(objective, "logits")(logits, targets), sentence)


@both_objectives
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"hidden": HIDDEN.long()}, "hidden must be a floating-point tensor, not torch.int64"),
        ({"hidden": torch.zeros(4)}, "hidden must have at least 2 dimensions, not the shape [4]"),
        ({"hidden": torch.zeros(2, 3, 0)}, "hidden must have at least one feature, not the shape [2, 3, 0]"),
        ({"weight": [[1.0]]}, "weight must be a floating-point tensor, not list"),
        ({"weight": WEIGHT.T}, "weight must have the shape [V, 4] with V ≥ 1, not [4, 5]"),
        ({"weight": WEIGHT[None]}, "weight must have the shape [V, 4] with V ≥ 1, not [1, 5, 4]"),
        ({"weight": WEIGHT[:0]}, "weight must have the shape [V, 4] with V ≥ 1, not [0, 4]"),
        ({"weight": WEIGHT.double()}, "weight is torch.float64 and hidden torch.float32: they must be of one dtype"),
        (
            {"weight": WEIGHT.to("meta")},
            "weight is on the meta device and has no values: load or make it on a real device first",
        ),
        ({"bias": torch.zeros(4)}, "bias must have the shape [5], not [4]"),
        ({"accum_dtype": torch.float16}, "accum_dtype must be None or torch.float32, not torch.float16"),
        ({"bias": ids(5)}, "bias must be a floating-point tensor, not torch.int64"),
        ({"bias": torch.zeros(5).half()}, "bias is torch.float16 and hidden torch.float32: they must be of one dtype"),
        (
            {"bias": torch.zeros(5, device="meta")},
            "bias is on the meta device and has no values: load or make it on a real device first",
        ),
    ],
)
def test_bad_head(objective, wrong, sentence):
    arguments = {"hidden": HIDDEN, "weight": WEIGHT, **wrong}
    head = (arguments.pop("hidden"), arguments.pop("weight"))
    refused(lambda: function(objective, "linear")(*head, TARGETS, **arguments), sentence)


# ---- strengths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gamma", "sentence"),
    [
        (0, "gamma must be a number in (0, 1], not 0"),
        (-0.2, "gamma must be a number in (0, 1], not -0.2"),
        (5.0, "gamma must be a number in (0, 1], not 5.0 (RewardRepetition(γ) asks for γ > 1 by name)"),
        (NAN, "gamma must be a number in (0, 1], not nan"),
        (True, "gamma must be a number in (0, 1], not True"),
        ("0.2", "gamma must be a number in (0, 1], not '0.2'"),
        (None, "gamma must be a number in (0, 1], not None"),
        (1e-50, "gamma must be at least 1e-37, below which float32 has only 0, not 1e-50"),
        (torch.full((3, 2), 0.5), "gamma must be a number or have the targets' shape [2, 3], not [3, 2]"),
        (torch.full((3,), 0.5), "gamma must be a number or have the targets' shape [2, 3], not [3]"),
        (ids(2, 3, value=1), "gamma must be of a floating-point dtype, not torch.int64"),
        (
            torch.full((2, 3), 0.5, device="meta"),
            "gamma is on the meta device and has no values: load or make it on a real device first",
        ),
        (torch.tensor([[1, 1, 1], [1, 0.0, 1]]), "gamma must be in (0, 1] everywhere, not 0 at [1, 1]"),
        (torch.tensor([[1, 1, 1.5], [1, 1, 1]]), "gamma must be in (0, 1] everywhere, not 1.5 at [0, 2]"),
        (torch.tensor([[NAN, 1, 1], [1, 1, 1]]), "gamma must be in (0, 1] everywhere, not nan at [0, 0]"),
        (torch.tensor(2.0), "gamma must be in (0, 1] everywhere, not 2 at [0, 0]"),
        (lambda *_: torch.full((2,), 0.5), "gamma must be a number or have the targets' shape [2, 3], not [2]"),
        (lambda *_: 1.25, "gamma must be in (0, 1] everywhere, not 1.25 at [0, 0]"),
        (
            Linear(1.0, 0.2, steps=10),
            "gamma is a schedule, Linear(start=1.0, stop=0.2, steps=10, delay=0), and was never told its step: set "
            "`loss.step` before each step (the integrations do), or pass a number",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_gamma(gamma, sentence):
    refused(lambda: SF.scale_grad(LOGITS, TARGETS, gamma), sentence)
    refused(lambda: SF.linear_scale_grad(HIDDEN, WEIGHT, TARGETS, gamma), sentence)


@pytest.mark.parametrize("alpha", [-0.1, NAN, math.inf, True, "1", None, torch.tensor(1.0)], ids=repr)
def test_bad_alpha(alpha):
    sentence = f"alpha must be a finite number from 0, not {alpha!r}"
    refused(lambda: SF.unlikelihood(LOGITS, TARGETS, alpha), sentence)
    refused(lambda: SF.linear_unlikelihood(HIDDEN, WEIGHT, TARGETS, alpha), sentence)
    refused(lambda: UnlikelihoodLoss(alpha), sentence)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ScaleGradLoss(1.5), "gamma must be a number in (0, 1], not 1.5 (RewardRepetition"),
        (lambda: ScaleGradLoss(0.5, reduction="all"), "reduction must be 'mean', 'sum' or 'none', not 'all'"),
        (lambda: Constant(0.0), "value must be a number in (0, 1], not 0.0"),
        (lambda: Linear(2.0, 0.2, steps=3), "start must be a number in (0, 1], not 2.0"),
        (lambda: Cosine(1.0, 0.0, steps=3), "stop must be a number in (0, 1], not 0.0"),
        (lambda: Cosine(1.0, 0.1, steps=0), "steps must be a whole number from 1, not 0"),
        (lambda: Linear(1.0, 0.1, steps=3, delay=-1), "delay must be a whole number from 0, not -1"),
        (lambda: RewardRepetition(1.0), "value must be a finite number above 1, not 1.0"),
        (lambda: RewardRepetition(math.inf), "value must be a finite number above 1, not inf"),
        (lambda: Seen(window=0), "window must be a whole number from 1, or None for no limit, not 0"),
        (lambda: NgramRepeat(0), "n must be a whole number from 1, not 0"),
        (lambda: NgramRepeat(2.0), "n must be a whole number from 1, not 2.0"),
        (lambda: Ids(3), "ids must be a list of token ids, not 3"),
        (lambda: Ids([1, -2]), "ids must hold token ids (whole numbers from 0), not -2"),
        (lambda: Seen(exempt=["eos"]), "exempt must hold token ids (whole numbers from 0), not 'eos'"),
    ],
)
def test_bad_settings_are_refused_when_made(make, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        make()


# ---- NaN: named when asked -----------------------------------------------------------------------------


@both_objectives
def test_nan_is_named_when_checked(objective):
    logits = LOGITS.clone()
    logits[0, 1, 3] = logits[1, 0, 0] = NAN
    refused(
        lambda: function(objective, "logits")(logits, TARGETS, check=True),
        "logits is NaN at [0, 1, 3] and 1 other place",
    )
    for name, place in (("hidden", (1, 1, 2)), ("weight", (4, 0)), ("bias", (2,))):
        head = {"hidden": HIDDEN.clone(), "weight": WEIGHT.clone(), "bias": torch.zeros(5)}
        head[name][place] = NAN
        refused(
            lambda head=head: function(objective, "linear")(targets=TARGETS, check=True, **head),
            f"{name} is NaN at {list(place)}",
        )


# ---- implementations: one named never falls back, "auto" warns once --------------------------------------------------


@dataclass(frozen=True, repr=False)
class Even(TokenSet):
    """Has no compact form."""

    def mask(self, history):
        return (torch.arange(history.vocab) % 2 == 0).expand(history.arrivals.numel(), -1)


NO_FAST_PATH = [
    (
        "unlikelihood",
        ~Seen(window=3),
        "unlikelihood on a complement, ~Seen(window=3), sums over nearly the whole vocabulary",
    ),
    ("unlikelihood", Even(), "Even() has no compact form (it defines no members)"),
    ("scale_grad", Even(), "Even() has no compact form (it defines no members)"),
    ("scale_grad", Even() | Seen(), "(Even() | Seen()) has no compact form (it defines no members)"),
]


@pytest.mark.parametrize(("objective", "token_set", "problem"), NO_FAST_PATH)
def test_without_a_fast_path(objective, token_set, problem, monkeypatch):
    monkeypatch.setattr(dispatch, "_warned", set())
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    for way in FAST_WAYS:
        refused(
            lambda way=way: run(objective, way, logits, TARGETS, discourage=token_set),
            f"impl={way[1]!r} cannot run this: {problem}; use 'reference' or 'auto'",
        )
    expected, expected_grad = gradient(objective, ("logits", "reference"), logits, TARGETS, discourage=token_set)
    with pytest.warns(
        UserWarning, match=re.escape(f"scalegrad: the reference implementation runs, slow and dense: {problem}")
    ):
        loss, grad = gradient(objective, ("logits", "auto"), logits, TARGETS, discourage=token_set)
    assert torch.equal(loss, expected)
    assert torch.equal(grad, expected_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        loss, grad = gradient(objective, ("linear", "auto"), logits, TARGETS, discourage=token_set)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert (grad - expected_grad).abs().max() < 1e-7


def test_scale_grad_on_a_complement_needs_no_fallback():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SF.scale_grad(LOGITS, TARGETS, discourage=~Seen())


@both_objectives
def test_inplace_on_a_leaf(objective):
    sentence = (
        "inplace=True would overwrite logits that are a leaf of the graph, or a view of one: pass the output of a model"
    )
    table = torch.zeros(4, 3, 5).requires_grad_()
    for leaf in (table[:2], table.view(2, 2, 3, 5)[0], LOGITS.clone().requires_grad_()):
        refused(lambda leaf=leaf: function(objective, "logits")(leaf, TARGETS, inplace=True), sentence)
    assert (table == 0).all()
    function(objective, "logits")(table[[0, 1]], TARGETS, inplace=True).backward()  # a copy may be overwritten
    assert (table == 0).all()
