"""The decoding benchmark runs small, stores what it prints, and gives no speed to a cache that writes other texts."""

import json
from dataclasses import replace

import pytest
import torch

pytest.importorskip("transformers")

from benchmarks import decoding
from benchmarks.__main__ import main
from benchmarks.cases import Case
from benchmarks.clock import CpuClock
from benchmarks.record import read
from benchmarks.runner import Skipped
from scalegrad.decoding import cache

SMALL = decoding.Options(cpu=True, rounds=2, vocab=80, width=64, rows=3, new_tokens=7)


@pytest.mark.parametrize("strategy", ["greedy", "beam=2"])
def test_stores_what_it_prints(strategy, tmp_path, capsys):
    out = tmp_path / "d.csv"
    decoding.command(replace(SMALL, strategy=strategy, out=out, json=True))
    told = json.loads(capsys.readouterr().out)["rows"]
    stored = read(out)
    assert [line["implementation"] for line in stored] == ["cache of the library", "cache of scalegrad"]
    assert [float(line["ms"]) for line in stored] == [row["ms"] for row in told]
    assert {(line["strategy"], line["rows"], line["new_tokens"]) for line in stored} == {(strategy, "3", "7")}
    assert [float(line["error"]) for line in stored] == [0, 0]
    for line in stored:
        assert float(line["tokens_per_second"]) == pytest.approx(3 * 7 / float(line["ms"]) * 1e3, rel=1e-3)


def test_prints_a_table(tmp_path, capsys):
    decoding.command(replace(SMALL, strategy="greedy", out=tmp_path / "d.csv"))
    printed = capsys.readouterr().out
    assert "greedy, 3 texts of 50 + 7 tokens" in printed
    assert "float32, width 64, V 80; median of at most 2 in turns" in printed


def test_a_strategy_that_is_none_ends_with_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["decoding", "--cpu", "--strategy", "greddy"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("benchmarks: --strategy 'greddy': the name must be one of greedy, beam, ")
    assert list(tmp_path.iterdir()) == []


def test_other_texts_have_no_speed(monkeypatch):
    class Forgetful(cache._roomy_layer()):
        def update(self, keys, values, *args, **kwargs):
            found = super().update(keys, values, *args, **kwargs)
            return tuple(torch.zeros_like(part) for part in found)

    monkeypatch.setattr(cache, "_roomy_layer", lambda: Forgetful)
    case = Case("decoding", "decoding", 4, decoding.PROMPT + 20, 80, 64, dtype=torch.float32)
    library, ours = decoding.measure("greedy", case, CpuClock(), rounds=2)
    assert not isinstance(library, Skipped)
    assert isinstance(ours, Skipped)
    assert ours.reason.startswith("cache of scalegrad: ")
    assert ours.reason.endswith("% of the texts are others")
