"""Sentences made from figures: each kind of figures gives the sentence it should."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scalegrad.results.comparison import Comparison, System, headline, sentences
from scalegrad.results.comparison.columns import best


def models(sg: dict[str, float], mle: dict[str, float], twin: dict[str, float] | None = None) -> Comparison:
    rows = [System("MLE", mle, family="mle"), System("SG γ=0.2", sg, family="sg", strength=0.2)]
    if twin:
        rows.append(System("MLE, decoded with γ=0.2", twin, "decoded", "mle", 0.2))
    return Comparison([*rows, System("Human", {"rep_1": 0.3}, "human")])


@pytest.mark.parametrize(
    ("trained", "decoded"),
    [
        (("sg", 0.2), ("MLE, top_k=5", None)),  # sampling is no penalty
        (("sg", 0.2), ("MLE, decoded with γ=0.5", 0.5)),
        (("ul", 0.5), ("MLE, decoded with γ=0.5", 0.5)),  # an α
    ],
)
def test_another_decoding_is_not_called_the_penalty(trained, decoded):
    figures = {"ppl": 20.0, "rep_1": 0.4}
    family, strength = trained
    rows = [
        System("MLE", figures, family="mle"),
        System("trained", figures, family=family, strength=strength),
        System(decoded[0], figures, "decoded", "mle", decoded[1]),
    ]
    assert Comparison(rows).twin is None
    assert not any("merely decoded" in sentence for sentence in sentences(Comparison(rows)))


def test_what_the_papers_figures_say(comparison):
    assert headline(comparison) == "Of 100 words, SG γ=0.2 repeats 44 and MLE 66. People repeat 32."
    gap, perplexity, twin, seeds = sentences(comparison)
    assert gap == "SG γ=0.2 closes 65% of the gap between MLE and human text."  # (.661 − .443) / (.661 − .325)
    assert perplexity == "Its plain perplexity is 14.20 against 13.24 (+7.3%)."
    assert "MLE repeats 45 of 100 words at a perplexity of 14.90: training is nearer to human text" in twin
    assert "apart in Rep-1, more than the deviation of .006." in seeds
    assert "are .218 apart" in seeds


@pytest.mark.parametrize(
    ("sg", "twin", "verdict"),
    [
        ((20.0, 0.40), (21.0, 0.45), "training is nearer to human text, and its perplexity is lower"),
        ((20.0, 0.40), (20.1, 0.45), "training is nearer to human text, and its perplexity is no higher"),
        ((20.0, 0.40), (21.0, 0.40), "training is as near to human text, and its perplexity is lower"),
        ((20.0, 0.40), (20.1, 0.402), "neither is nearer to human text or lower in perplexity"),  # within 1% and .005
        ((20.0, 0.40), (19.0, 0.40), "the penalty is as near to human text, and its perplexity is lower"),
        ((20.0, 0.40), (19.0, 0.45), "training comes nearer to human text, the penalty keeps the lower perplexity"),
        ((20.0, 0.45), (21.0, 0.40), "the penalty comes nearer to human text, training keeps the lower perplexity"),
        ((20.0, 0.35), (20.0, 0.20), "training is nearer to human text"),  # .20 is further from people's .30 than .35
    ],
)
def test_training_beside_the_penalty(sg, twin, verdict):
    found = models(*({"ppl": ppl, "rep_1": rep} for ppl, rep in (sg, (18.0, 0.6), twin)))
    assert any(verdict in sentence for sentence in sentences(found))


@pytest.mark.parametrize(
    ("sg", "mle", "said"),
    [
        (0.25, 0.6, "goes past human text"),
        (0.65, 0.6, "is further from human text than MLE"),
        (0.2, 0.3, "repeats no more than people do"),
    ],
)
def test_gaps_that_are_none(sg, mle, said):
    assert said in sentences(models({"rep_1": sg}, {"rep_1": mle}))[0]


def test_within_the_deviation_is_said(comparison):
    wide = replace(comparison.systems[2], deviations={"rep_1": 0.3})
    rows = [wide if system.label == "SG γ=0.2" else system for system in comparison.systems]
    assert "no more than the deviation of .300" in sentences(Comparison(rows))[-1]


def test_systems_without_repetition_are_ranked_by_their_score():
    rows = [System(name, {"rouge_1": score}) for name, score in (("MLE", 41.87), ("UL", 42.03), ("SG", 42.19))]
    assert headline(Comparison(rows)) == "R-1: SG 42.19, then UL 42.03, MLE 41.87."
    assert headline(Comparison([])) == "Nothing to compare yet"
    assert headline(Comparison([System("MLE", {"ppl": 20.0}, family="mle")])) == "1 system compared"


def test_the_calibrated_perplexity_is_explained():
    found = models({"ppl": 43.13, "calibrated_ppl": 38.72}, {"ppl": 39.52, "calibrated_ppl": 39.52})
    (said,) = sentences(found)
    assert "43.13 against 39.52 (+9.1%)" in said
    assert re.search(r"calibrated perplexity, .* multiplied by γ .* is 38\.72", said)
    assert "does not compare with MLE's" in said  # MLE was not fitted a boost on seen tokens
    assert best(found.systems, "calibrated_ppl", None) == set()


def test_a_chosen_model_is_spoken_of(comparison):
    assert headline(replace(comparison, chosen="SG γ=0.5")).startswith("Of 100 words, SG γ=0.5 repeats 56")


def test_kinds_are_checked():
    with pytest.raises(ValueError, match="kind must be one of trained, decoded, human, paper, not 'robot'"):
        System("x", {}, kind="robot")
