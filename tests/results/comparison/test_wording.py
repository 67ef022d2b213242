"""The headline of a comparison, and which rows it speaks of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalegrad.results.comparison import Comparison, System, headline
from scalegrad.results.comparison.columns import best, column


@pytest.mark.parametrize(
    ("trained", "decoding", "penalty"),
    [
        (("sg", 0.2), "top_k=5", None),  # sampling is no penalty
        (("sg", 0.2), "greedy", "gamma=0.5"),
        (("sg", 0.2), "greedy", "gamma=0.2,block=3"),
        (("ul", 0.5), "greedy", "gamma=0.5"),  # an α
    ],
)
def test_another_decoding_is_not_called_the_penalty(trained, decoding, penalty):
    figures = {"ppl": 20.0, "rep_1": 0.4}
    objective, strength = trained
    rows = [
        System(figures=figures, objective="mle"),
        System(figures=figures, objective=objective, strength=strength),
        System(figures=figures, objective="mle", decoding=decoding, penalty=penalty),
    ]
    assert Comparison(rows).twin is None


def test_what_the_papers_figures_say(comparison):
    assert headline(comparison) == "Of 100 words, SG γ=0.2 repeats 44 and MLE 66. People repeat 32."


def test_systems_without_repetition_are_ranked_by_their_score():
    rows = [System(name, {"rouge_1": score}) for name, score in (("MLE", 41.87), ("UL", 42.03), ("SG", 42.19))]
    assert headline(Comparison(rows)) == "R-1: SG 42.19, then UL 42.03, MLE 41.87."
    assert headline(Comparison([])) == "Nothing to compare yet"
    assert headline(Comparison([System(figures={"ppl": 20.0}, objective="mle")])) == "1 system compared"


def test_the_calibrated_perplexity_does_not_compare_with_mle():
    rows = [
        System(figures={"ppl": 39.52, "calibrated_ppl": 39.52}, objective="mle"),
        System(figures={"ppl": 43.13, "calibrated_ppl": 38.72}, objective="sg", strength=0.2),
    ]
    assert best(Comparison(rows), "calibrated_ppl") == set()  # MLE was not fitted a boost on seen tokens
    assert "does not compare with MLE's" in column("calibrated_ppl").meaning


def test_a_chosen_model_is_spoken_of(comparison):
    assert headline(replace(comparison, chosen=System(objective="sg", strength=0.5))).startswith(
        "Of 100 words, SG γ=0.5 repeats 56"
    )


def test_kinds_are_checked():
    with pytest.raises(ValueError, match="kind must be one of trained, decoded, human, paper, not 'robot'"):
        System("x", {}, kind="robot")
