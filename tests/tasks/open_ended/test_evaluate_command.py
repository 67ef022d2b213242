"""`scalegrad evaluate`, `report` and `sweep` from the outside: real folders, real files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scalegrad.cli import main
from scalegrad.runs import Run, read_rows
from tests.tasks.open_ended.conftest import saved, text_file, tiny

__all__ = ["saved", "text_file", "tiny"]

SMALL = ("--chunks", "2", "--prefixes", "3", "--new-tokens", "50")


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Run:
    """A finished run whose model is the tiny one, as if trained with γ = 0.4."""
    made = Run.create(tmp_path / "run", {"objective": "sg=0.4", "settings": {"seed": 0}})
    made.log({"step": 1, "validation_nll": 6.0})
    made.model_path.mkdir()
    for file in saved.iterdir():
        (made.model_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((saved / "config.json").read_text())
    config["scalegrad"] = {"objective": "sg", "gamma": 0.4}
    (made.model_path / "config.json").write_text(json.dumps(config))
    return made


def call(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """Standard output of a command that ends well."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert end.value.code == 0, printed.err
    return printed.out


def mistake(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The one sentence of a command that does not."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.startswith("scalegrad: ")
    assert said.count("\n") == 1
    return said


def values(rows: list[dict[str, Any]], metric: str) -> dict[tuple[str | None, ...], float]:
    """A figure by decoding and penalty; people's by "human"."""
    mine = [row for row in rows if row["metric"] == metric]
    return {
        ("human",) if row.get("objective") == "human" else (row.get("decoding"), row.get("penalty")): row["value"]
        for row in mine
    }


def test_a_run_keeps_its_figures_and_is_reported(run, text_file, tmp_path, capsys):
    assert "has not finished" in mistake(capsys, "evaluate", run.path, "--corpus", text_file, *SMALL)
    run.finish({"selected_step": 1, "validation_ppl": 403.4})
    twin = ("-s", "greedy", "-s", "greedy,gamma=0.4")
    printed = json.loads(call(capsys, "evaluate", run.path, "--corpus", text_file, *SMALL, *twin, "--json"))
    rows = printed["rows"]
    assert rows == [row.as_dict() for row in run.rows()]
    assert {(row["run"], row["corpus"]) for row in rows} == {("run", "prose.txt")}
    assert ("calibrated_ppl", 0.4) in {(row["metric"], row.get("strength")) for row in rows}  # from the saved record
    assert any("of" in note for note in printed["notes"])
    assert (run.path / "samples" / "prose.txt.greedy,gamma=0.4.jsonl").read_text().count("\n") == 3
    more = call(capsys, "evaluate", run.path, "--corpus", text_file, *SMALL, "-s", "top_k=5")
    texts = values([row.as_dict() for row in run.rows()], "rep_1")
    assert list(texts) == [("greedy", None), ("greedy", "gamma=0.4"), ("human",), ("top_k=5", None)]  # they stay
    assert texts["greedy", None] == values(rows, "rep_1")["greedy", None]
    assert "SG γ=0.4" in more

    page, table = tmp_path / "out" / "report.html", tmp_path / "out" / "table.md"
    shown = call(capsys, "report", run.path, "--html", page, "--markdown", table, "--plots", tmp_path / "plots")
    assert "SG γ=0.4" in shown
    assert "<h1>" in page.read_text()
    ppl = values(rows, "ppl")
    assert f"| SG γ=0.4 | {ppl[None, None]:,.2f} |" in table.read_text().replace("**", "")
    assert {file.name for file in (tmp_path / "plots").iterdir()} == {"repetition.png", "trade-off-rep-1.png"}
    reported = json.loads(call(capsys, "report", run.path, "--json"))["rows"]
    assert values(reported, "rep_1") == texts
    assert values(reported, "ppl")[None, "gamma=0.4"] == ppl[None, "gamma=0.4"]


def test_parts_that_are_left_out_stay_and_other_settings_replace(run, text_file, capsys):
    run.finish({})

    def evaluate(*options: str) -> dict[tuple[str, Any], float]:
        call(capsys, "evaluate", run.path, "--corpus", text_file, "--new-tokens", "50", *options, "--json")
        return {(row.metric, (row.decoding, row.penalty)): row.value for row in run.rows() if row.objective == "sg"}

    first = evaluate("--chunks", "2", "--prefixes", "3", "-s", "greedy", "-s", "greedy,gamma=0.4")
    more = evaluate("--chunks", "0", "--prefixes", "3", "-s", "top_k=5", "--calibrate", "0.9")
    assert first.items() < more.items()
    assert {place for _, place in more.keys() - first.keys()} == {("top_k=5", None)}
    chunks = evaluate("--chunks", "1", "--prefixes", "0")
    assert {key for key in chunks if chunks[key] != more[key]} <= {key for key in more if key[1] == (None, None)}
    assert chunks["ppl", (None, None)] != more["ppl", (None, None)]
    fewer = evaluate("--chunks", "0", "--prefixes", "2", "--overwrite")
    assert fewer["n_texts", ("greedy", None)] == 2
    assert fewer["n_texts", ("top_k=5", None)] == 3
    assert "different prefixes" in call(capsys, "report", run.path).replace("\n", " ")


def test_where_figures_go_is_tried_first_and_said_only_of_what_is_written(run, text_file, tmp_path, capsys):
    run.finish({})
    (tmp_path / "file").write_text("")
    words = ("evaluate", run.path, "--corpus", text_file, *SMALL, "--samples", tmp_path / "texts")
    assert "--out: " in mistake(capsys, *words, "--out", tmp_path / "file" / "rows.jsonl")
    assert not (tmp_path / "texts").exists()
    shown = call(capsys, *words, "--out", tmp_path / "new" / "rows.jsonl")
    assert {row.corpus for row in read_rows(tmp_path / "new" / "rows.jsonl")} == {"prose.txt"}
    assert "results.jsonl" not in shown
    assert run.rows() == []


def test_a_models_folder_prints_a_table_and_writes_rows(saved, text_file, tmp_path, capsys):
    out, samples = tmp_path / "rows.jsonl", tmp_path / "texts"
    shown = call(
        capsys,
        "evaluate",
        saved,
        "--corpus",
        text_file,
        *SMALL,
        "--calibrate",
        "0.5",
        "--out",
        out,
        "--samples",
        samples,
    )
    rows = read_rows(out)
    (rep_1,) = [row.value for row in rows if row.metric == "rep_1" and row.decoding == "greedy"]
    assert f"{rep_1:.3f}".removeprefix("0") in shown
    assert "calibrated_ppl" in {row.metric for row in rows}
    assert {(row.run, row.model) for row in rows} == {(None, str(saved))}
    assert "not GPT-2's" in shown.replace("\n", " ")
    assert {file.name for file in samples.glob("*.jsonl")} == {"prose.txt.greedy.jsonl", "prose.txt.human.jsonl"}
    assert not (saved / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("evaluate", "MODEL", "--corpus", "nowhere"), "there is no 'nowhere'"),
        (("evaluate", "MODEL", "--corpus", "wikitext-103:train"), 'embedded as "valid" and "test"'),
        (("evaluate", "MODEL", "--strategy", "gready", "--chunks", "1"), "gready"),
        (("evaluate", "MODEL", "--batch", "0"), "expected auto or a whole number"),
        (("evaluate", "./nothing"), "nothing"),
        (("report", "./nothing"), "FOLDER: there is no nothing"),
        (("sweep", "MODEL", "x.txt", "--out", "o", "--gamma", "a,b"), "expected numbers with commas"),
        (("sweep", "MODEL", "x.txt", "--out", "o", "--gamma", "1.5"), "gamma"),
        (("sweep", "MODEL", "x.txt", "--out", "o", "--budget", "lots"), "Invalid value for --budget"),
    ],
)
def test_mistakes(saved, arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in mistake(capsys, *(saved if word == "MODEL" else word for word in arguments))
    assert list(tmp_path.iterdir()) == []  # nothing half-written


def test_a_sweep_recommends(saved, text_file, tmp_path, capsys):
    out = tmp_path / "sweep"
    training = ("--max-steps", "1", "--batch", "2", "--length", "40", "--validation", "none", "--alpha", "none")
    words = ("sweep", saved, text_file, "--gamma", "0.5", "--seeds", "1", "--corpus", text_file, "--out", out)
    swept = json.loads(call(capsys, *words, *training, *SMALL, "--budget", "1000%", "--json"))
    ppl = [row for row in swept["rows"] if row["metric"] == "ppl"]
    assert [(row["objective"], row.get("strength"), row.get("penalty"), row["n"]) for row in ppl] == [
        ("mle", None, None, 1),
        ("mle", None, "gamma=0.5", 1),
        ("sg", 0.5, None, 1),
    ]
    assert swept["recommendation"]["sentence"][:4] in ("Take", "Stay")
    assert [row.as_dict() for row in read_rows(out / "results.jsonl")] == swept["rows"]
    assert json.loads((out / "recommendation.json").read_text()) == swept["recommendation"]
    assert swept["recommendation"]["sentence"].split(":")[0] in (out / "report.html").read_text()
    (weights := out / "mle-seed-0" / "model" / "model.safetensors").write_bytes(b"")
    again = json.loads(call(capsys, *words, *training, *SMALL, "--budget", "1000%", "--json", "--overwrite"))
    assert measured(again) == measured(swept)  # trained anew
    assert weights.stat().st_size > 0


def measured(swept: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows but for those of the clock and the machine."""
    return [
        row for row in swept["rows"] if row["metric"] not in ("train_seconds", "tokens_per_second", "peak_memory_mib")
    ]


def test_a_sweep_names_the_run_that_failed_and_ends_with_1(saved, text_file, tmp_path, capsys):
    training = ("--max-steps", "1", "--batch", "2", "--length", "40", "--validation", "none", "--alpha", "none")
    (tmp_path / "sweep" / "sg-0.5-seed-0").mkdir(parents=True)
    (tmp_path / "sweep" / "sg-0.5-seed-0" / "thesis.txt").write_text("somebody's")  # no run: refused
    words = ("sweep", saved, text_file, "--gamma", "0.5", "--seeds", "1", "--corpus", text_file)
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in (*words, "--out", tmp_path / "sweep", *training, *SMALL)])
    message = capsys.readouterr().err.splitlines()[-1]
    assert end.value.code == 1
    assert "1 of 2 jobs failed" in message
    assert "sg-0.5-seed-0" in message
    assert (tmp_path / "sweep" / "mle-seed-0" / "results.jsonl").is_file()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_sweep_misses_what_it_draws_with_before_the_work(saved, text_file, package, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    said = mistake(capsys, "sweep", saved, text_file, "--out", tmp_path / "sweep")
    assert f"{package} is needed here" in said
    assert not (tmp_path / "sweep").exists()


def test_bad_lines_are_left_out_on_demand(saved, text_file, tmp_path, capsys):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in text_file.read_text().splitlines()) + "broken\n")
    words = ("evaluate", saved, "--corpus", path, "--chunks", 1, "--prefixes", 0, "--json")
    assert "not JSON" in mistake(capsys, *words)
    with pytest.raises(SystemExit) as end:
        main([*map(str, words), "--skip-bad"])
    assert end.value.code == 0
    assert capsys.readouterr().err.count("1 left out: 1 × not JSON") == 1
