"""Objectives by name, and what a saved model says of them."""

import json

import pytest
import torch

from scalegrad import ScaleGradLoss, UnlikelihoodLoss, objectives, sets
from scalegrad.gamma import Constant, Cosine, Linear, RewardRepetition
from scalegrad.objectives import Objective, record


@pytest.mark.parametrize(
    ("text", "name", "strength", "label"),
    [
        ("mle", "mle", None, "MLE"),
        ("ul=0.5", "ul", 0.5, "UL α=0.5"),
        ("sg=0.2", "sg", 0.2, "SG γ=0.2"),
        ("sg=1.0", "sg", 1.0, "SG γ=1.0"),
        ("sg=linear:1.0:0.2:1000", "sg", Linear(1.0, 0.2, 1000), "SG γ=linear:1.0:0.2:1000"),
        ("sg=cosine:1.0:0.5:10:3", "sg", Cosine(1.0, 0.5, 10, 3), "SG γ=cosine:1.0:0.5:10:3"),
    ],
)
def test_parse_and_back(text, name, strength, label):
    objective = objectives.parse(text)
    assert (objective.name, objective.strength, objective.label) == (name, strength, label)
    assert str(objective) == text
    assert objectives.parse(str(objective)) == objective


def test_the_papers_strengths_are_the_defaults():
    assert str(objectives.parse("sg")) == "sg=0.2"
    assert str(objectives.parse("ul")) == "ul=1.0"
    assert str(objectives.parse(" sg=.2 ")) == "sg=0.2"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rl", "objective must be mle, ul=α, sg=γ or"),
        ("mle=1", "objective must be mle, ul=α, sg=γ or"),
        ("sg=", "objective must be mle, ul=α, sg=γ or"),
        ("sg=x", "'x' in 'sg=x' is no number"),
        ("sg=2", r"gamma must be a number in \(0, 1\], not 2.0"),
        ("sg=nan", r"gamma must be a number in \(0, 1\]"),
        ("ul=-1", "alpha must be a finite number from 0, not -1.0"),
        ("ul=linear:1:0:10", "'linear:1:0:10' in 'ul=linear:1:0:10' is no number"),
        ("sg=square:1.0:0.2:10", "objective must be mle"),
        ("sg=linear:1.0:0.2", "objective must be mle"),
        ("sg=linear:1.0:0.2:1.5", "with whole numbers of steps"),
        ("sg=linear:1.0:0.2:0", "steps must be a whole number from 1, not 0"),
    ],
)
def test_mistakes(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        objectives.parse(text)


def test_made_by_hand_is_checked_too():
    with pytest.raises(ValueError, match=r"strength must be None for mle, not 1\.0"):
        Objective("mle", 1.0)
    with pytest.raises(ValueError, match="gamma must be a number"):
        Objective("sg")
    with pytest.raises(ValueError, match="name must be 'mle', 'ul' or 'sg', not 'SG'"):
        Objective("SG", 0.2)


def test_losses():
    """MLE is our own loss at γ = 1."""
    logits, targets = (
        torch.randn(1, 6, 9, generator=torch.Generator().manual_seed(0)),
        torch.tensor([[1, 2, 1, 4, 2, 2]]),
    )
    plain = torch.nn.functional.cross_entropy(logits[0], targets[0])
    assert Objective("mle").loss()(logits, targets).item() == pytest.approx(plain.item(), rel=1e-6)
    assert Objective("sg", 0.3).loss()(logits, targets).item() == ScaleGradLoss(0.3)(logits, targets).item()
    smooth = Objective("ul", 0.3).loss(label_smoothing=0.1)
    assert smooth(logits, targets).item() == UnlikelihoodLoss(0.3, label_smoothing=0.1)(logits, targets).item()


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (ScaleGradLoss(0.2), {"objective": "sg", "gamma": 0.2, "discourage": "Seen()", "options": {}}),
        (ScaleGradLoss(1.0), {"objective": "mle", "gamma": 1.0, "discourage": "Seen()", "options": {}}),
        (
            UnlikelihoodLoss(1.0, label_smoothing=0.1, discourage=sets.Seen(window=64, exempt=[2])),
            {
                "objective": "ul",
                "alpha": 1.0,
                "discourage": "Seen(exempt=(2,), window=64)",
                "options": {"label_smoothing": 0.1},
            },
        ),
        (ScaleGradLoss(Linear(1.0, 0.2, 5)), {"gamma": "linear:1.0:0.2:5"}),
        (ScaleGradLoss(Constant(0.3)), {"gamma": "0.3"}),
        (ScaleGradLoss(RewardRepetition(5.0)), {"gamma": "RewardRepetition(value=5.0)"}),
        (ScaleGradLoss(torch.ones(2, 3)), {"gamma": "a tensor of shape [2, 3]"}),
        (ScaleGradLoss(torch.sigmoid), {"gamma": "sigmoid"}),
    ],
)
def test_record(loss, told):
    found = record(loss)
    assert {key: found[key] for key in told} == told
    assert json.loads(json.dumps(found)) == found


def test_a_record_without_a_name_for_gamma_is_no_objective():
    """γ as a function of position or entropy has no name, and neither has a model that was trained elsewhere."""
    assert objectives.of_record({"objective": "sg", "gamma": "by_entropy"}) is None
    assert objectives.of_record({}) is None
    assert objectives.of_record({"objective": "ul", "alpha": 0.5}) == objectives.parse("ul=0.5")
