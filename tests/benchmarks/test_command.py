"""`scalegrad bench NAME` hands its arguments on, and its mistakes are one sentence."""

import json

import pytest

from benchmarks import BENCHMARKS
from benchmarks.ceilings import Ceilings
from benchmarks.record import read
from scalegrad.cli import main

pytest.importorskip("typer")


def run(*argv):
    with pytest.raises(SystemExit) as stop:
        main(["bench", *argv])
    return stop.value.code or 0


def test_help_lists_the_benchmarks_and_an_example(capsys):
    assert run("--help") == 0
    out = capsys.readouterr().out
    assert "Example: scalegrad bench gpu --quick" in out
    assert all(name in out for name in BENCHMARKS)


def test_arguments_go_to_the_benchmark(tmp_path, capsys, monkeypatch):
    from benchmarks import cpu

    monkeypatch.setattr(cpu, "SHAPES", ((1, 10),))
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(cpu, "measure_ceilings", lambda *_, **__: Ceilings(1e10, 1e10))
    out = tmp_path / "cpu.csv"
    assert run("cpu", "--rounds", "2", "--vocab", "40", "--out", str(out), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["implementation"] for row in told["rows"]] == [line["implementation"] for line in read(out)]


def test_help_of_one_is_its_own(capsys):
    assert run("plot", "--help") == 0
    assert "--out OUT" in capsys.readouterr().out


def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path, capsys):
    assert run("plot", str(tmp_path / "none.csv")) == 2
    assert capsys.readouterr().err.startswith("scalegrad: ")
    assert run("plot") == 2


def test_the_study_under_load_in_words_and_as_json(tmp_path, capsys):
    """The file and --json hold the figures, words and a small table say them."""
    out = tmp_path / "made" / "load.json"
    asked = ("study", "--raters", "2", "--seconds", "1", "--pause", "0.4", "--out", str(out))
    assert run(*asked, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(out.read_text())
    assert told["audit"]["stored"] == told["acknowledged"] > 0
    assert [file.name for file in out.parent.iterdir()] == ["load.json"]
    assert run(*asked) == 0
    said = capsys.readouterr().out.splitlines()
    stored = json.loads(out.read_text())
    answers = stored["acknowledged"]
    assert said[0].startswith("2 raters on SQLite, each answering every 0.4 s for 1 s; ")
    assert said[1].startswith(
        f"{answers} answers acknowledged: {answers} stored, 0 lost, 0 doubled, 0 gaps; 0 requests"
    )
    assert said[2].split() == ["ms", "p50", "p95", "p99", "max"]
    assert said[3].split() == ["answer", "acknowledged", *map(str, stored["answer_ms"].values())]
    assert said[4].split() == ["next", "page", *map(str, stored["page_ms"].values())]
    assert said[5:] == [f"stored in {out}"]
