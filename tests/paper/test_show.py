"""`scalegrad show` as a user types it."""

import json
import sys
from functools import partial

import pytest


@pytest.fixture
def scalegrad(command):
    return partial(command, "show")


def test_gradients_in_the_terminal(scalegrad):
    code, out, err = scalegrad("gradients", "--gamma", "0.2")
    assert (code, err) == (0, "")
    assert "0.8333" in out  # T-N and NT-NN at p = ½
    assert "turns negative at p_neg = 0.5 (1/(α + 1) = 0.5)" in out
    assert "raises p_k everywhere" in out


def test_gradients_as_json_and_as_a_picture(scalegrad, tmp_path):
    path = tmp_path / "gradients.png"
    code, out, _ = scalegrad("gradients", "--gamma", "0.5", "--alpha", "3", "--out", str(path), "--json")
    told = json.loads(out)
    half = told["p"].index(0.5)
    assert code == 0
    assert told["scale_grad"]["T-N"][half] == pytest.approx(1 - 0.25 / 0.75)
    assert told["turns_negative_at"] == pytest.approx(0.25, abs=1e-9)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_novel_set_in_the_terminal(scalegrad):
    code, out, _ = scalegrad("novel-set", "to be, or not to be [b]")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert code == 0
    assert rows[0] == ["1", "to", "yes", "0", "8"]
    assert rows[5] == ["6", "to", "no", "5", "3"]
    assert [row[1] for row in rows[-3:]] == ["[", "b", "]"]  # not read as markup


def test_novel_set_as_json_and_as_a_picture(scalegrad, tmp_path):
    path = tmp_path / "novel.svg"
    code, out, _ = scalegrad("novel-set", "a b a c", "--window", "1", "--out", str(path), "--json")
    told = json.loads(out)
    assert code == 0
    assert [step["n_seen"] for step in told["steps"]] == [0, 1, 1, 1]
    assert [step["is_novel"] for step in told["steps"]] == [True] * 4
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gradients", "--gamma", "0"], "gamma must be a number in (0, 1], not 0.0"),
        (["gradients", "--gamma", "1.5"], "gamma must be a number in (0, 1], not 1.5"),
        (["gradients", "--alpha", "-1"], "alpha must be a finite number from 0, not -1.0"),
        (["gradients", "--out", "a.jpg"], "a.jpg: a picture ends in .png, .svg or .pdf, not '.jpg'"),
        (["gradients", "--out", "none/a.png"], "none/a.png: its folder none does not exist"),
        (["novel-set", ""], "sentence must have at least one word"),
        (["novel-set", "a b", "--window", "0"], "window must be a whole number from 1"),
        (["novel-set", "a b", "--tokenizer", "none"], "tokenizer must be a folder"),
        (["novel-set", "a " * 61, "--out", "a.png"], "61 tokens; a picture holds at most 60"),
    ],
)
def test_mistakes_end_with_code_2_and_one_sentence(scalegrad, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = scalegrad(*arguments)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.startswith("scalegrad: ")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_only_the_picture_needs_matplotlib(scalegrad, tmp_path, monkeypatch):
    class NotInstalled:
        def find_spec(self, name, path, target=None):
            if name.split(".")[0] == "matplotlib":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled(), *sys.meta_path])
    assert scalegrad("novel-set", "a b")[0] == 0
    code, _, err = scalegrad("novel-set", "a b", "--out", str(tmp_path / "a.png"))
    assert (code, err) == (2, 'scalegrad: matplotlib is needed here: pip install "scalegrad[plots]"\n')


def test_help_has_an_example(scalegrad):
    for name in ("gradients", "novel-set"):
        code, out, _ = scalegrad(name, "--help")
        assert code == 0
        assert f"Example: scalegrad show {name}" in out
