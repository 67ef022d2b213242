"""A hand-made reproduction with everything one may have: deviations, intervals, texts, a picture, a plot."""

import pytest

from paper.pages import Reproduction, Shown
from scalegrad.results.comparison import Comparison, Plot, Sample, System
from scalegrad.results.figure import new_figure, style_axes
from tests.results.comparison.conftest import HOSTILE, LOOP, comparison

__all__ = ["comparison"]


@pytest.fixture
def plot():
    figure = new_figure(8, 3)
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4])
    style_axes(axes, title="A line", x="x", y="y")
    return Plot("line", "A line & nothing else.", figure)


@pytest.fixture
def found(comparison):
    mle = [Sample("The horses", LOOP), Sample("A town", " by a sea.")]
    sg = [Sample("The horses", " ran & ran."), Sample("A town", HOSTILE)]
    texts = [
        System("MLE", {"rep_1": 0.6}, family="mle", samples=mle),
        System("SG γ=0.2, in the paper", {"rep_1": 0.4}, "paper", "sg", samples=sg),
    ]
    spread = System("UL α=1.0", {"cider": 9.0, "words": float("nan")}, intervals={"cider": (8.5, 9.5)}, runs=2)
    return Reproduction(
        "wikitext",
        "Open-ended <generation>",
        ("table 1", "table 10", "figure 2"),
        "smoke",
        [
            Shown("Main table", comparison),
            Shown("Texts", Comparison(texts), texts=True),
            Shown("Judged", Comparison([spread, System("MLE", {"cider": 8.0})])),
        ],
        said=["SG stands below MLE_1."],
        made={"model": "base", "settings": {"seeds": [0, 1], "note": None}},
    )
