"""`scalegrad evaluate`, `report` and `sweep` from the outside: real folders, real files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scalegrad.cli import main
from scalegrad.runs import Run
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


def test_a_run_keeps_its_figures_and_is_reported(run, text_file, tmp_path, capsys):
    assert "has not finished" in mistake(capsys, "evaluate", run.path, "--corpus", text_file, *SMALL)
    run.finish({"selected_step": 1, "validation_ppl": 403.4})
    twin = ("-s", "greedy", "-s", "greedy,gamma=0.4")
    out = call(capsys, "evaluate", run.path, "--corpus", text_file, *SMALL, *twin, "--json")
    printed = json.loads(out)["prose.txt"]
    assert run.load("evaluation") == {"prose.txt": printed}
    assert printed["protocol"]["gamma"] == 0.4  # from the saved record
    assert (run.path / "samples" / "prose.txt.greedy,gamma=0.4.jsonl").read_text().count("\n") == 3
    more = call(capsys, "evaluate", run.path, "--corpus", text_file, *SMALL, "-s", "top_k=5")
    kept = run.load("evaluation")["prose.txt"]["completion"]
    assert list(kept) == ["greedy", "greedy,gamma=0.4", "top_k=5"]  # what was there stays
    assert kept["greedy"] == printed["completion"]["greedy"]
    assert "SG γ=0.4" in more

    page, table = tmp_path / "out" / "report.html", tmp_path / "out" / "table.md"
    said = call(capsys, "report", run.path, "--html", page, "--markdown", table, "--plots", tmp_path / "plots")
    assert "SG γ=0.4" in said
    assert "<h1>" in page.read_text()
    assert f"| SG γ=0.4 | {printed['language_modelling']['ppl']:,.2f} |" in table.read_text().replace("**", "")
    assert {file.name for file in (tmp_path / "plots").iterdir()} == {"repetition.png", "trade-off-rep-1.png"}
    rows = json.loads(call(capsys, "report", run.path, "--json"))["rows"]
    assert [row["label"] for row in rows] == ["SG γ=0.4", "SG γ=0.4, decoded with γ=0.4", "SG γ=0.4, top_k=5", "Human"]
    assert rows[1]["figures"]["ppl"] == printed["penalised"]["gamma=0.4"]["ppl"]


def test_columns_that_are_left_out_stay_and_lost_ones_are_named(run, text_file, tmp_path, capsys):
    run.finish({})

    def evaluate(*options: str) -> tuple[dict[str, Any], str]:
        with pytest.raises(SystemExit) as end:
            main(["evaluate", str(run.path), "--corpus", str(text_file), "--new-tokens", "50", *options, "--json"])
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        return run.load("evaluation")["prose.txt"], said.err

    first, _ = evaluate("--chunks", "2", "--prefixes", "3", "-s", "greedy", "-s", "greedy,gamma=0.4")
    more, said = evaluate("--chunks", "0", "--prefixes", "3", "-s", "top_k=5", "--calibrate", "0.9")
    assert "No longer" not in said
    assert list(more["completion"]) == ["greedy", "greedy,gamma=0.4", "top_k=5"]
    assert {key: more[key] for key in ("language_modelling", "penalised", "human", "protocol", "notes")} == {
        key: first[key] for key in ("language_modelling", "penalised", "human", "protocol", "notes")
    }
    chunks, said = evaluate("--chunks", "1", "--prefixes", "0")
    assert chunks["completion"] == more["completion"]
    assert (chunks["protocol"]["chunks"], chunks["protocol"]["prefixes"]) == (1, 3)
    assert "No longer in evaluation.json, measured otherwise: prose.txt: gamma=0.4\n" in said
    fewer, said = evaluate("--chunks", "0", "--prefixes", "2", "--overwrite")
    assert fewer["language_modelling"] == chunks["language_modelling"]
    assert list(fewer["completion"]) == ["greedy"]
    assert "measured otherwise: prose.txt: greedy,gamma=0.4; top_k=5\n" in said


def test_where_figures_go_is_tried_first_and_said_only_of_what_is_written(run, text_file, tmp_path, capsys):
    run.finish({})
    (tmp_path / "file").write_text("")
    words = ("evaluate", run.path, "--corpus", text_file, *SMALL, "--samples", tmp_path / "texts")
    assert "--out: " in mistake(capsys, *words, "--out", tmp_path / "file" / "figures.json")
    assert not (tmp_path / "texts").exists()
    shown = call(capsys, *words, "--out", tmp_path / "new" / "figures.json")
    assert "prose.txt" in json.loads((tmp_path / "new" / "figures.json").read_text())
    assert "evaluation.json" not in shown
    assert not (run.path / "evaluation.json").exists()


def test_a_models_folder_prints_a_table_and_writes_json(saved, text_file, tmp_path, capsys):
    out = tmp_path / "figures.json"
    samples = tmp_path / "texts"
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
    figures = json.loads(out.read_text())["prose.txt"]
    assert f"{figures['completion']['greedy']['rep_1']:.3f}".removeprefix("0") in shown
    assert "calibrated_ppl" in figures["language_modelling"]
    assert "not GPT-2's" in shown.replace("\n", " ")
    assert {file.name for file in samples.glob("*.jsonl")} == {"prose.txt.greedy.jsonl", "prose.txt.human.jsonl"}
    assert not (saved / "evaluation.json").exists()


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
    found = json.loads(call(capsys, *words, *training, *SMALL, "--budget", "1000%", "--json"))
    assert [row["label"] for row in found["rows"]] == ["MLE", "SG γ=0.5", "MLE, decoded with γ=0.5", "Human"]
    assert found["recommendation"]["sentence"][:4] in ("Take", "Stay")
    assert json.loads((out / "sweep.json").read_text()) == found
    assert found["recommendation"]["sentence"].split(":")[0] in (out / "report.html").read_text()
    (weights := out / "mle-seed-0" / "model" / "model.safetensors").write_bytes(b"")
    again = json.loads(call(capsys, *words, *training, *SMALL, "--budget", "1000%", "--json", "--overwrite"))
    assert again == found  # trained anew
    assert weights.stat().st_size > 0


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_sweep_misses_what_it_draws_with_before_the_work(saved, text_file, package, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    said = mistake(capsys, "sweep", saved, text_file, "--out", tmp_path / "sweep")
    assert f"{package} is needed here" in said
    assert not (tmp_path / "sweep").exists()
