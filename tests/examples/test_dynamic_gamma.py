"""The example of docs/gamma.md runs, small, and its parts do what they say."""

import importlib.util
import random
from pathlib import Path

import pytest
import torch

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "dynamic_gamma.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("dynamic_gamma", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gentle_when_unsure", [0.2, 0.5, 1.0]),
        ("gentle_when_sure", [1.0, 0.5, 0.2]),
        ("firm_on_repeats", [1.0, 0.6, 0.2]),
    ],
)
def test_gammas(example, name, expected):
    entropy, mass = torch.tensor([0.0, 2.0, 10.0]), torch.tensor([0.0, 0.4, 0.95])
    assert getattr(example, name)(None, entropy, mass).tolist() == pytest.approx(expected)


def test_stories_are_well_formed_and_hardly_repeat_their_nouns(example):
    stories = [example.story(random.Random(seed)) for seed in range(50)]
    assert {example.well_formed(words) for words in stories} == {1.0}
    nouns = [[word for word in words if example.KIND_OF.get(word) == "NOUN"] for words in stories]
    repeated = sum(len(words) - len(set(words)) for words in nouns) / sum(map(len, nouns))
    assert 0.0 < repeated < 0.1
    cut_off_then_right_then_wrong = "the end . anna found the old horse . horse the old ."
    assert example.well_formed(cut_off_then_right_then_wrong.split()) == 0.5


def test_runs_small(example, capsys):
    """An untrained model is unsure everywhere (log 135 = 4.9 nats > 4): γ by entropy is then 1 or .2, to the digit."""
    sizes = {"seeds": 2, "steps": 1, "width": 16, "layers": 1, "batch": 2, "stories": 4, "held-out": 2}
    runs = example.main([f"--{name}={size}" for name, size in sizes.items()])
    assert len(runs) == 2
    for run in runs:
        assert run["gentle when unsure"] == run["1 (MLE)"]
        assert run["gentle when sure"] == run["0.2"]
        assert run["0.2"]["ppl"] != run["1 (MLE)"]["ppl"]
        assert 50 < run["0.5"]["ppl"] < 500
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    mean = (runs[0]["0.2"]["ppl"] + runs[1]["0.2"]["ppl"]) / 2
    assert any(line.startswith(f"| 0.2 | {mean:.3f} ±") for line in table)
