"""`--start` of `scalegrad evaluate` and `scalegrad complete`: the same option, and a line that says what was done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tasks.open_ended.conftest import saved, text_file, tiny, with_start

__all__ = ["saved", "text_file", "tiny", "with_start"]

FEW = ("--chunks", "1", "--prefixes", "1", "--new-tokens", "40", "--json")


def test_evaluate_gives_a_model_its_start_symbol(command, with_start, text_file, tmp_path):
    folder = str(with_start[-1])
    figures = {}
    for start in ("auto", "yes", "no"):
        code, out, errors = command("evaluate", folder, "--corpus", str(text_file), *FEW, "--start", start)
        assert code == 0, errors
        figures[start] = {row["metric"]: row["value"] for row in json.loads(out)["rows"] if "objective" not in row}[
            "ppl"
        ]
        assert ("start symbol: none" in errors) == (start == "no")
        assert ("start symbol: <s> before every text" in errors) == (start != "no")
    assert figures["auto"] == figures["yes"] != figures["no"]


def test_evaluate_gives_gpt2_none(command, saved, text_file):
    runs = [
        command("evaluate", str(saved), "--corpus", str(text_file), *FEW, *more)
        for more in ((), ("--start", "auto"), ("--start", "no"))
    ]
    rows = [json.loads(out)["rows"] for _, out, _ in runs]
    assert {"ppl", "rep_1"} <= {row["metric"] for row in rows[0]}
    assert rows[0] == rows[1] == rows[2]
    assert all("start symbol: none" in errors for _, _, errors in runs)


def test_complete_gives_a_model_its_start_symbol(command, with_start, text_file, tmp_path):
    folder = with_start[-1]
    prompts = tmp_path / "prompts.jsonl"  # the second is empty: the symbol is all there is
    prompts.write_text('{"prefix": "The end of the"}\n{"prefix": ""}\n')
    texts = {}
    for start in ("auto", "no"):
        for source in (("--prompts", str(prompts)), ("--protocol", "paper", "--limit", "1")):
            out = tmp_path / f"{start}-{source[0]}.jsonl"
            code, _, errors = command("complete", str(folder), *source, "--start", start, "--out", str(out))
            assert code == 0, errors
            assert ("start symbol: <s> before every text" in errors) == (start == "auto")
            texts[start, source[0]] = [json.loads(line)["continuation"] for line in out.read_text().splitlines()]
    for source in ("--prompts", "--protocol"):
        assert texts["auto", source][0] != texts["no", source][0]
    assert texts["auto", "--prompts"][1] == texts["no", "--prompts"][1]


@pytest.mark.parametrize("verb", [("evaluate",), ("complete", "--protocol", "paper")])
def test_another_word_is_refused_before_the_model_is_loaded(command, verb):
    code, _, errors = command(verb[0], "/nowhere", *verb[1:], "--start", "maybe")
    assert (code, errors.count("\n")) == (2, 1)
    assert "start must be auto, yes or no, not 'maybe'" in errors


def test_a_tokenizer_without_the_symbol_is_refused(command, saved: Path, text_file):
    code, _, errors = command("evaluate", str(saved), "--corpus", str(text_file), *FEW, "--start", "yes")
    assert (code, errors.count("\n")) == (2, 2)  # after the line that the model is loaded
    assert "has no start symbol" in errors
