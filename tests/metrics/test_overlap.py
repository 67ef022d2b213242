from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scalegrad.metrics import bleu, rouge, rouge_per_text

SCITLDR = json.loads((Path(__file__).parent / "data" / "scitldr-12.json").read_text(encoding="utf-8"))
PREDICTIONS = [item["prediction"] for item in SCITLDR["items"]]
REFERENCES = [item["references"] for item in SCITLDR["items"]]
EXPECTED = SCITLDR["expected"]


def test_rouge_of_real_summaries() -> None:
    values = rouge_per_text(PREDICTIONS, REFERENCES)
    means = rouge(PREDICTIONS, REFERENCES)
    for ours, theirs in (
        ("rouge_1", "rouge1"),
        ("rouge_2", "rouge2"),
        ("rouge_l", "rougeL"),
        ("rouge_lsum", "rougeLsum"),
    ):
        assert values[ours].tolist() == pytest.approx(EXPECTED[theirs], abs=1e-6)
        assert means[ours] == pytest.approx(sum(EXPECTED[theirs]) / 12, abs=1e-6)


def test_stems_are_compared_or_not() -> None:
    assert rouge(["horses running"], ["horse runs"])["rouge_1"] == 1
    assert rouge(["horses running"], ["horse runs"], stem=False)["rouge_1"] == 0


def test_bleu_of_real_summaries() -> None:
    first = [references[0] for references in REFERENCES]
    assert bleu(PREDICTIONS, first) == pytest.approx(EXPECTED["bleu"], abs=1e-6)


def test_several_references_each_count() -> None:
    # Every 4-gram of the first prediction is in one reference or the other, and the second has a single one.
    predictions = ["a b c d e f g h", "one two three four"]
    references: list[Any] = [["a b c d e x x x", "y y y d e f g h"], "one two three four"]
    assert bleu(predictions, [references[0], [references[1]]]) == bleu(predictions, references)
    assert bleu(predictions, references) > bleu(predictions, [references[0][0], references[1]]) > 50
    assert rouge_per_text(["a b"], [["x y", "a b"]])["rouge_1"].tolist() == [1.0]


@pytest.mark.parametrize("score", [rouge, bleu])
@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], ["b", "c"], "predictions and references must be as many, not 1 and 2"),
        ([], [], "predictions must hold at least one text"),
        (["a"], [[]], r"references\[0\] must hold at least one text"),
        ("a", ["b"], "must be lists with an entry a text, not one text"),
    ],
)
def test_bad_arguments_are_named(score: Any, predictions: Any, references: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score(predictions, references)
