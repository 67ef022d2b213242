"""`scalegrad demo`, whole: the shipped model, three objectives, one page; on less text and for two steps."""

import json

import pytest

from scalegrad.cli import main
from scalegrad.data import embedded
from scalegrad.runs import Run, read_rows
from scalegrad.tasks.open_ended import corpora, data

SMALL = ["--max-steps=2", "--batch=1", "--prefixes=3", "--chunks=1", "--gamma=0.3", "--alpha=0.5"]


@pytest.fixture
def little_text(monkeypatch):
    """The first pages of each corpus: encoding two million words takes longer than all the rest."""
    monkeypatch.setattr(data, "wikitext2", lambda: embedded.wikitext2()[:40_000])
    for module in (data, corpora):
        monkeypatch.setattr(module, "wikitext103", lambda split: embedded.wikitext103(split)[:40_000])


def test_from_the_shipped_model_to_the_page(little_text, tmp_path, capsys):
    out = tmp_path / "demo"
    main_returns(["demo", f"--out={out}", *SMALL])
    printed = capsys.readouterr().out
    assert "SG γ=0.3" in printed
    assert "The page to look at" in printed
    rows = read_rows(out / "results.jsonl")

    def value(metric: str, objective: str, penalty: str | None = None) -> float:
        (row,) = [r for r in rows if (r.metric, r.objective, r.penalty) == (metric, objective, penalty)]
        return row.value

    assert {(row.objective, row.strength) for row in rows} == {
        ("mle", None), ("ul", 0.5), ("sg", 0.3), ("human", None),
    }  # fmt: skip
    assert value("rep_1", "human") < value("rep_1", "mle") <= 1
    assert value("rep_1", "mle", "gamma=0.3") < value("rep_1", "mle")
    # Two steps hardly move the model; the twin pays for less repetition with perplexity.
    assert value("ppl", "sg") == pytest.approx(value("ppl", "mle"), rel=0.1)
    assert value("ppl", "mle", "gamma=0.3") > value("ppl", "mle")
    page = (out / "report.html").read_text()
    assert "MLE, decoded with γ=0.3" in page
    assert "http" not in page.replace("http://www.w3.org", "").lower().split("<body", 1)[1].split("</body>")[0]

    weights = (out / "sg-0.3-seed-0" / "model" / "model.safetensors").stat().st_mtime_ns
    main_returns(["demo", f"--out={out}", *SMALL, "--json"])  # nothing is left to do: the same rows
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == [row.as_dict() for row in rows]
    assert (out / "sg-0.3-seed-0" / "model" / "model.safetensors").stat().st_mtime_ns == weights


def test_other_settings_need_another_folder_or_overwrite(little_text, tmp_path, capsys):
    out = tmp_path / "demo"
    run = Run.create(out / "mle-seed-0", {"task": "another"})
    run.finish({})
    small = ["--max-steps=1", "--prefixes=1", *SMALL[1:2], *SMALL[3:]]
    with pytest.raises(SystemExit) as ended:
        main(["demo", f"--out={out}", *small])
    assert ended.value.code == 2
    assert "overwrite it (--overwrite)" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["mle-seed-0"]  # said before the others are trained
    main_returns(["demo", f"--out={out}", *small, "--overwrite"])
    assert Run.open(run.path).config["task"] == "open_ended"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--gamma=2"], "gamma must be a number in (0, 1], not 2.0"),
        (["--alpha=-1"], "alpha"),
        (["--max-steps=0"], "max-steps must be a whole number from 1, not 0"),
        (["--seeds=0"], "seeds must be at least 1, not 0"),
        (["--chunks=0"], "chunks must be at least 1, not 0"),
    ],
)
def test_mistakes_are_one_sentence(options, sentence, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["demo", f"--out={tmp_path / 'demo'}", *options])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("scalegrad: ")
    assert said.count("\n") == 1
    assert sentence in said


def main_returns(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
