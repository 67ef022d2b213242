"""The example of docs/gamma.md runs, small, and its γ do what their names say."""

import importlib.util
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("tokenizers")
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "dynamic_gamma.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("dynamic_gamma", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gentle_when_unsure(example):
    entropy = torch.tensor([0.0, 2.5, 10.0])
    assert example.gentle_when_unsure(None, entropy, None).tolist() == pytest.approx([0.2, 0.5, 1.0])


def test_firm_on_repeats(example):
    mass = torch.tensor([0.0, 0.4, 0.95])
    assert example.firm_on_repeats(None, None, mass).tolist() == pytest.approx([1.0, 0.6, 0.2])


def test_runs_small(example, monkeypatch, capsys):
    """An untrained model is unsure everywhere (log 300 = 5.7 nats > 5), so γ by entropy is 1: MLE to the digit."""
    words = " ".join(f"word{i % 37} and other{i % 11} ." for i in range(2000)) + "\n"
    monkeypatch.setattr(example, "wikitext2", lambda: words)
    monkeypatch.setattr(example, "wikitext103", lambda split: words)
    sizes = {"seeds": 2, "steps": 0, "tune-steps": 1, "layers": 1, "width": 16, "length": 16, "batch": 2, "prefixes": 2}
    arguments = [f"--{name}={size}" for name, size in (sizes | {"vocab": 300}).items()]
    runs = example.main(arguments)
    assert len(runs) == 2
    for run in runs:
        assert run["by entropy"]["ppl"] == run["1 (MLE)"]["ppl"]
        assert run["0.2"]["ppl"] != run["1 (MLE)"]["ppl"]
        assert 1 < run["0.5"]["ppl"] < 1000
    table = capsys.readouterr().out.splitlines()[-5:]
    mean = (runs[0]["0.2"]["ppl"] + runs[1]["0.2"]["ppl"]) / 2
    assert table[2].startswith(f"| 0.2 | {mean:.1f} ±")
