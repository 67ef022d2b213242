"""The training examples run as they stand, on a tiny model and a small text, and leave a model that loads."""

import importlib.util
import json
import math
from pathlib import Path

import pytest
import torch
import transformers

from tests.integrations import tiny

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A saved model with its tokenizer, and a text."""
    folder = tmp_path_factory.mktemp("start")
    tiny.model("gpt2", dtype=torch.float32, resid_pdrop=0.1).save_pretrained(folder / "model")
    tiny.tokenizer().save_pretrained(folder / "model")
    source = torch.Generator().manual_seed(0)
    text = [tiny.WORDS[i] for i in torch.randint(0, 12, (660,), generator=source).tolist()]
    (folder / "text.txt").write_text(" ".join(text))
    parts = [(text[i : i + 4], text[i + 4 : i + 12]) for i in range(0, 360, 12)]
    pairs = [{"prompt": " ".join(first), "completion": " " + " ".join(rest)} for first, rest in parts]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    return folder


@pytest.fixture(autouse=True)
def quiet_cpu(monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def check_saved(folder, gamma):
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert loaded.config.scalegrad["gamma"] == gamma
    assert transformers.AutoTokenizer.from_pretrained(folder)("w4")["input_ids"] == [7]
    return loaded


PLAIN = math.log(tiny.VOCAB)  # what a model that knows nothing loses


def test_trainer(start, tmp_path):
    arguments = ["--model", start / "model", "--text", start / "text.txt", "--out", tmp_path, "--length", 30]
    figures = load("trainer").main([str(a) for a in [*arguments, "--steps", 10]])
    assert 0.5 * PLAIN < figures["eval_loss"] < PLAIN
    check_saved(tmp_path, 0.2)


@pytest.mark.filterwarnings("ignore::UserWarning")  # TRL, of attention kernels that a CPU does not have
def test_sft(start, tmp_path):
    arguments = ["--model", start / "model", "--data", start / "pairs.jsonl", "--out", tmp_path, "--length", 64]
    figures = load("sft").main([str(a) for a in [*arguments, "--steps", 2, "--exempt", 2]])
    assert 0.5 * PLAIN < figures["eval_loss"] < 1.5 * PLAIN
    assert check_saved(tmp_path, 0.5).config.scalegrad["discourage"] == "Seen(exempt=(2,))"


def test_accelerate_loop(start, tmp_path):
    arguments = ["--model", start / "model", "--text", start / "text.txt", "--out", tmp_path, "--length", 30]
    nll = load("accelerate_loop").main([str(a) for a in arguments])
    assert len(nll) == 11  # 22 rows, two a batch
    assert nll[0] == pytest.approx(PLAIN, rel=0.1)
    check_saved(tmp_path, "linear:1.0:0.2:100")


@pytest.mark.filterwarnings("ignore")  # Lightning, of what it would do with more cores
def test_lightning_module(start, tmp_path):
    arguments = ["--model", start / "model", "--text", start / "text.txt", "--out", tmp_path, "--length", 30]
    figures = load("lightning_module").main([str(a) for a in [*arguments, "--steps", 4]])
    assert figures["val_nll"] == pytest.approx(PLAIN, rel=0.1)
    check_saved(tmp_path, 0.2)
