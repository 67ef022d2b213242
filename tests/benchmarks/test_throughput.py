"""The throughput benchmark runs small, stores what it prints, and gives no speed to a wrong loss."""

import json
from dataclasses import replace

import pytest
import torch

from benchmarks import throughput
from benchmarks.cases import Case
from benchmarks.clock import CpuClock
from benchmarks.record import read
from benchmarks.runner import Skipped
from scalegrad.objectives import Objective

pytest.importorskip("transformers")
SMALL = throughput.Options(cpu=True, rounds=2, vocab=80, width=64, length=12)


def test_stores_what_it_prints(tmp_path, capsys):
    out = tmp_path / "t.csv"
    throughput.command(replace(SMALL, batch=(1, 3), out=out, json=True))
    told = json.loads(capsys.readouterr().out)["rows"]
    stored = read(out)
    assert [line["implementation"] for line in stored] == 2 * list(throughput.OBJECTIVES)
    assert [float(line["ms"]) for line in stored] == [row["ms"] for row in told]
    assert {line["skipped"] for line in stored} == {""}
    assert all(float(line["error"]) < 1 for line in stored)
    for line, batch in zip(stored, [1, 1, 1, 1, 3, 3, 3, 3], strict=True):
        assert float(line["tokens_per_second"]) == pytest.approx(batch * 12 / float(line["ms"]) * 1e3, rel=1e-3)
    own, mle, scale_grad = stored[:3]
    expected = float(own["ms"]) / float(scale_grad["ms"])
    assert float(scale_grad["over_framework"]) == pytest.approx(expected, rel=1e-3)
    assert float(scale_grad["over_mle"]) == pytest.approx(float(mle["ms"]) / float(scale_grad["ms"]), rel=1e-3)


def test_says_what_must_hold(tmp_path, capsys):
    throughput.command(replace(SMALL, rounds=1, out=tmp_path / "t.csv"))
    printed = capsys.readouterr().out
    assert "median of 1 interleaved step each" in printed
    assert "training step 1×12, V 80, fp32" in printed
    assert "throughput of SG over the framework's own loss: " in printed
    assert "throughput of SG over our γ = 1: " in printed


@pytest.mark.parametrize(("value", "verdict"), [(0.9701, "ok"), (0.9699, "MISS"), (None, "not measured")])
def test_verdicts(value, verdict, capsys):
    line = {"implementation": "SG scalegrad", "over_framework": value, "over_mle": 1.0}
    throughput._print_verdicts([line, {"implementation": "UL scalegrad"}])
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(f": {verdict}")
    assert second.endswith(": ok")


def test_a_wrong_loss_has_no_speed(monkeypatch):
    monkeypatch.setitem(throughput.OBJECTIVES, "SG scalegrad", Objective("sg", 0.9))
    case = Case("throughput 1", "step", 2, 12, 80, 64, dtype=torch.float32)
    rows = throughput.measure(case, CpuClock(), rounds=2)
    wrong = [row for row in rows if isinstance(row, Skipped)]
    assert [row.name for row in wrong] == ["SG scalegrad"]
    assert "wrong: loss" in wrong[0].reason
