"""Scores worked out by hand; intervals hold what they must."""

import math

import pytest

from scalegrad.data.pairs import Pair
from scalegrad.tasks.summarization.evaluation import best
from scalegrad.tasks.summarization.scoring import human, mean_rouge, novelty, per_text, score

PAIRS = [
    Pair("1", ("the cat sat on the mat", "it slept"), ("the cat sat", "a cat slept")),
    Pair("2", ("a dog ran",), ("dogs ran\nthey barked",)),
]


def test_rouge_by_hand():
    """ "the cat slept" shares 2 of 3 words with either reference, and one of 2 pairs ("the cat" or "cat slept").

    "they barked. dog ran" has all four stems; by sentence both lines are found whole; of its pairs (ROUGE-2 does not
    look at sentence ends) they-barked and dog-ran are shared, barked-dog is not: 2 of 3.
    """
    found = per_text(["the cat slept", "They barked. Dog ran."], PAIRS, mover=False)
    assert found["rouge_1"] == pytest.approx([200 / 3, 100])
    assert found["rouge_2"] == pytest.approx([50, 200 / 3])
    assert found["rouge_l"] == pytest.approx([200 / 3, 100])
    assert mean_rouge(["the cat slept", "They barked. Dog ran."], PAIRS) == pytest.approx(
        (2 * (200 / 3 + 100) / 2 + (50 + 200 / 3) / 2) / 3
    )


def test_repetition_length_and_novelty():
    found = per_text(["the cat the cat ran", "a dog ran"], PAIRS, mover=False)
    assert found["rep_1"][0] == pytest.approx(2 / 5)
    assert found["rep_2"][0] == pytest.approx(1 / 4)  # the-cat, cat-the, the-cat, cat-ran
    assert math.isnan(found["rep_1"][1])  # three words: too short
    assert found["words"].tolist() == [5, 3]
    assert found["novelty_1"].tolist() == [1 / 3, 0]  # ran
    assert found["novelty_2"].tolist() == [2 / 3, 0]  # cat-the, cat-ran


def test_novelty_ignores_case_and_punctuation():
    assert novelty("The Cat!", "the cat", 1) == 0
    assert math.isnan(novelty("one", "x", 2))


def test_score_has_intervals_around_the_mean():
    found = score(["the cat slept", "a dog"], PAIRS, mover=False)
    assert found["rouge_1"]["low"] <= found["rouge_1"]["value"] <= found["rouge_1"]["high"]
    assert found["words"] == {"value": 2.5, "low": 2.0, "high": 3.0, "n": 2}
    assert found["empty"] == {"value": 0, "n": 2}
    assert score(["", "a"], PAIRS, mover=False)["empty"]["value"] == 1


def test_moverscore_of_a_reference_is_100():
    found = score(["a cat slept", "dogs ran they barked"], PAIRS)
    assert found["moverscore_1"]["value"] > 90
    assert score(["the cat sat", "dogs ran\nthey barked"], PAIRS)["moverscore_1"]["value"] == pytest.approx(
        100, abs=1e-3
    )


def test_the_references_row():
    found = human(PAIRS)
    assert found["words"]["value"] == 3.5
    assert found["novelty_1"]["value"] == pytest.approx((0 + 3 / 4) / 2)  # dogs, they, barked


def test_as_many_summaries_as_articles():
    with pytest.raises(ValueError, match="summaries and articles must be as many, not 1 and 2"):
        per_text(["a"], PAIRS, mover=False)


def test_the_best_of_a_grid():
    choice = best({2.0: 1.0, 0.0: 3.0, 1.0: 3.0})
    assert (choice.value, choice.score) == (0.0, 3.0)
    with pytest.raises(ValueError, match="at least one value"):
        best({})
