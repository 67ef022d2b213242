"""The example of docs/when-not.md runs, small, and its parts do what they say."""

import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "must_repeat.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("must_repeat", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_texts_are_as_told_and_held_out(example):
    calls = example.roll_calls("test").split("\n")
    readings = [line.split(" : ")[1] for line in calls[:4]]
    assert len(set(readings)) == 1
    assert readings[0].count(",") == 7
    assert calls[5].startswith("Monday :")
    rows = example.table("test").split("\n")
    assert len(rows) == 1 + 800 * 5
    assert {row.split(" , ")[1] for row in rows[1:]} == {"Bergen", "Lisbon", "Geneva", "Dublin", "Athens"}
    assert "def " in example.code("test")
    for text in example.KINDS.values():
        assert text("test") != text("train")


def test_figures_by_hand(example):
    """Three tokens; the model gives 0 and 1 half of the probability each, wherever it is."""
    logits = torch.tensor([0.0, 0.0, -math.inf]).expand(1, 3, 3)
    ids = torch.tensor([[0, 1, 0, 0]])  # targets 1, 0, 0; the last two repeat

    plain = example.figures(lambda input_ids: SimpleNamespace(logits=logits), ids)
    assert plain["ppl"] == pytest.approx(2.0)
    assert plain["repeats"] == pytest.approx(2 / 3)
    assert plain["right"] == pytest.approx(2 / 3)  # of equals the first, 0
    assert plain["right where it repeats"] == 1.0

    # A penalty of 1/4: after "0", p is 1/5 and 4/5; after "0 1" both were seen, and p is a half again.
    penalised = example.figures(lambda input_ids: SimpleNamespace(logits=logits), ids, penalty=0.25)
    assert penalised["ppl"] == pytest.approx((5 / 4 * 2 * 2) ** (1 / 3))
    assert penalised["right"] == 1.0


def test_runs_small(example, capsys):
    """Even hardly trained, a model that is punished for saying things again does worse where they are to be said."""
    told = example.main(["--steps=1", "--train=2", "--test=1"])
    for kind in ("Python code", "table", "roll calls"):
        assert told[kind]["MLE, decoded with γ=0.2"]["ppl"] > 1.05 * told[kind]["MLE"]["ppl"]
    assert told["prose"]["MLE"]["repeats"] < told["Python code"]["MLE"]["repeats"] < told["table"]["MLE"]["repeats"]
    assert told["table"]["SG γ=0.2"]["ppl"] != told["table"]["MLE"]["ppl"]
    printed = capsys.readouterr().out
    assert f"| MLE | {told['table']['MLE']['ppl']:.2f} | {told['table']['MLE']['right']:.1%} |" in printed
