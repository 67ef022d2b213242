"""`scalegrad study` as it is typed."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import subprocess
import sys

import pytest

from scalegrad.cli import main
from scalegrad.study import load_study
from scalegrad.study.answers import Answers
from scalegrad.study.folder import default_database
from tests.study.studies import made_completions, write_jsonl


@pytest.fixture
def files(tmp_path):
    """Completion files of two systems, as `scalegrad complete` writes them."""
    made = made_completions(systems=("mle", "sg"))
    return {
        system: write_jsonl(
            tmp_path / f"{system}.jsonl",
            [{"id": key, "prefix": made.prefixes[key], "continuation": text} for key, text in texts.items()],
        )
        for system, texts in made.texts.items()
    }


def new(folder, files, *options):
    systems = [part for name, file in files.items() for part in ("--system", f"{name}={file}")]
    return run("study", "new", str(folder), *systems, *options)


def run(*arguments):
    """The exit code of a command in this process."""
    try:
        main(arguments)
    except SystemExit as exit:
        return exit.code or 0
    return 0


def test_bad_lines_are_left_out_on_demand(tmp_path, files, capsys):
    with files["sg"].open("a") as file:
        file.write("broken\n")
    assert new(tmp_path / "study", files, "--prefixes", "4") == 2
    assert "sg.jsonl, line" in capsys.readouterr().err
    assert new(tmp_path / "study", files, "--prefixes", "4", "--skip-bad") == 0
    assert capsys.readouterr().err.count("1 left out: 1 × not JSON") == 1


def test_new_writes_what_was_asked_for(tmp_path, files, capsys):
    options = ("--pair", "sg:mle", "--prefixes", "12", "--raters", "anna,ben", "--checks", "2", "--repeats", "3")
    more = (
        "--ties",
        "--seed",
        "5",
        "--closes",
        "2031-05-01",
        "--url",
        "https://study.example.org/",
        "--title",
        "Texts",
    )
    assert new(tmp_path / "study", files, *options, *more) == 0
    out = capsys.readouterr().out
    assert "2 raters, 17 items each (sg:mle)" in out
    study = load_study(tmp_path / "study")
    assert (study.pairs, study.ties, study.seed, study.title) == ((("sg", "mle"),), True, 5, "Texts")
    assert (study.closes.date().isoformat(), study.closes.hour) == ("2031-05-01", 23)
    assert {len(sheet) for sheet in study.sheets.values()} == {17}
    with (tmp_path / "study" / "links.csv").open(newline="") as rows:
        links = {row["who"]: row["link"] for row in csv.DictReader(rows)}
    assert list(links) == ["anna", "ben", "(organiser)"]
    assert all(link.startswith("https://study.example.org/") for link in links.values())
    for link in links.values():  # a terminal is a log too
        assert link.rsplit("/", 1)[1] not in out


def test_checks_that_reuse_prefixes_are_noted(tmp_path, files, capsys):
    """Forty prefixes: with 38 in the study, two of three checks are made of others."""
    assert new(tmp_path / "few", files, "--prefixes", "38", "--checks", "2") == 0
    assert "Note" not in capsys.readouterr().out
    assert new(tmp_path / "many", files, "--prefixes", "38", "--checks", "3") == 0
    assert "1 of 3 attention checks reuse a prefix" in capsys.readouterr().out
    assert new(tmp_path / "json", files, "--prefixes", "38", "--checks", "3", "--json") == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert "reuse a prefix" in note
    rate_all(tmp_path / "many", lambda item: item.systems[0])
    assert run("study", "analyse", str(tmp_path / "many")) == 0
    assert "1 of 3 attention checks reuse a prefix" in " ".join(capsys.readouterr().out.split())


def test_a_question_in_another_language_is_noted(tmp_path, files, capsys):
    assert new(tmp_path / "study", files, "--prefixes", "5", "--question", "Welcher Text ist besser?") == 0
    assert "the other words on the raters' pages are English" in capsys.readouterr().out


def test_new_in_json_and_with_other_field_names(tmp_path, capsys):
    lines = [{"n": i, "p": f"prefix {i}", "c": f"text {i}"} for i in range(5)]
    one = write_jsonl(tmp_path / "a.jsonl", lines)
    two = write_jsonl(tmp_path / "b.jsonl", [line | {"c": "other"} for line in lines])
    fields = ("--id-field", "n", "--prefix-field", "p", "--field", "c")
    assert new(tmp_path / "s", {"a": one, "b": two}, *fields, "--prefixes", "5", "--raters", "3", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["raters"] == ["rater-1", "rater-2", "rater-3"]
    assert made["items_per_rater"] == 5
    assert {item.prefix_id for item in load_study(tmp_path / "s").items} == set("01234")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--prefixes", "41"), "prefixes must lie between 1 and 40, not 41"),
        (("--pair", "sg"), "--pair must be A:B"),
        (("--pair", "sg:gpt"), "pairs names 'gpt'"),
        (("--raters", "a,a"), "different names"),
        (("--closes", "soon"), "--closes must be a date like 2027-01-31"),
        (("--checks", "2", "--checks-from", "x.jsonl"), "give one of the two"),
        (("--system", "third"), "--system must be NAME=FILE"),
        (("--system", "third=no-such-file.jsonl"), "no such file"),
        (("--url", "example.org", "--prefixes", "5"), "the address of the study must be"),
    ],
)
def test_mistakes_get_one_sentence_and_leave_nothing(tmp_path, files, capsys, options, sentence):
    assert new(tmp_path / "study", files, *options) == 2
    said = capsys.readouterr().err
    assert said.startswith("scalegrad: ")
    assert sentence in said
    assert "Traceback" not in said
    assert {file.name for file in tmp_path.iterdir()} == {"mle.jsonl", "sg.jsonl"}


def test_mismatched_prefixes_are_refused_with_the_difference(tmp_path, files, capsys):
    lines = [json.loads(line) for line in files["sg"].read_text().splitlines()]
    lines[7]["prefix"] = lines[7]["prefix"].replace("market", "Markt", 1)
    write_jsonl(files["sg"], lines)
    assert new(tmp_path / "study", files) == 2
    said = capsys.readouterr().err
    assert "prefix '7' is not the same" in said
    assert "Markt" in said


def rate_all(folder, wanted):
    """Every rater answers everything; `wanted(item)` names the system they prefer."""
    study = load_study(folder)
    answers = Answers(default_database(folder), study, quickest=0)
    for rater, sheet in study.sheets.items():
        answers.start(rater, "native")
        for number in range(1, len(sheet) + 1):
            prefers = wanted(study.shown(rater, number)[1])
            choice = "first" if study.chosen(rater, number, "first") == prefers else "second"
            answers.answer(rater, number, 0, choice)
    answers.dispose()


def swap_systems(design):
    for item in design["items"]:
        item["systems"].reverse()


def shorten_sheets(design):
    design["sheets"] = {rater: sheet[:3] for rater, sheet in design["sheets"].items()}


def change_a_text(design):
    design["items"][0]["texts"][0] += "."


def change_a_side(design):
    design["sheets"]["rater-1"][0][1] ^= 1


@pytest.mark.parametrize("edit", [swap_systems, shorten_sheets, change_a_text, change_a_side])
def test_an_edited_design_is_refused(tmp_path, files, capsys, edit):
    folder = tmp_path / "study"
    new(folder, files, "--pair", "sg:mle", "--prefixes", "6")
    rate_all(folder, lambda item: "sg" if int(item.prefix_id) % 4 else "mle")
    original = (folder / "study.json").read_text()
    design = json.loads(original)
    edit(design)
    (folder / "study.json").write_text(json.dumps(design))
    for verb in (("analyse",), ("serve", "--port", "70000")):
        capsys.readouterr()
        assert run("study", verb[0], str(folder), *verb[1:]) == 2
        error = capsys.readouterr().err
        assert "study.json" in error
        assert "edited" in error
        assert error.count("\n") == 1
    (folder / "study.json").write_text(original)
    assert run("study", "analyse", str(folder)) == 0


def test_a_design_laid_out_otherwise_or_closing_later_is_not_edited(tmp_path, files):
    folder = tmp_path / "study"
    new(folder, files, "--pair", "sg:mle", "--prefixes", "6", "--closes", "2031-05-01")
    rate_all(folder, lambda item: "sg")
    design = json.loads((folder / "study.json").read_text())
    design["closes"] = "2032-05-01T00:00:00+00:00"
    (folder / "study.json").write_text(json.dumps(design, indent=4, sort_keys=True))
    assert run("study", "analyse", str(folder)) == 0


def test_from_new_to_analyse(tmp_path, files, capsys):
    folder = tmp_path / "study"
    new(folder, files, "--pair", "sg:mle", "--prefixes", "10")
    assert run("study", "analyse", str(folder)) == 2
    assert "has no answers yet" in capsys.readouterr().err
    study = load_study(folder)
    answers = Answers(default_database(folder), study, quickest=0)
    for rater, sheet in study.sheets.items():
        answers.start(rater, "native")
        for number in range(1, len(sheet) + 1):
            wanted = "sg" if number <= 8 else "mle"
            choice = "first" if study.chosen(rater, number, "first") == wanted else "second"
            answers.answer(rater, number, 0, choice)
    answers.dispose()
    assert run("study", "analyse", str(folder), "--json", "--out", str(tmp_path / "results")) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["pairs"][0]["win_rate"]["estimate"] == 0.8
    assert figures["raters"][0]["english"] == "native"
    assert (tmp_path / "results" / "report.html").exists()
    assert run("study", "analyse", str(folder)) == 0
    printed = capsys.readouterr().out
    assert "80.0%" in printed
    assert run("study", "analyse", str(folder), "--level", "2") == 2
    assert capsys.readouterr().err == "scalegrad: --level must be a share between 0 and 1, not 2\n"


def test_a_title_with_brackets_is_printed_as_it_is(tmp_path, files, capsys):
    new(tmp_path / "study", files, "--prefixes", "5", "--title", "Which[/b] is better?")
    rate_all(tmp_path / "study", lambda item: item.systems[0])
    assert run("study", "analyse", str(tmp_path / "study")) == 0
    assert "Which[/b] is better?" in capsys.readouterr().out


def test_serve_leaves_the_logs_of_others_alone(tmp_path, files, capsys):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.close = stream.close  # as some libraries' do
    new(tmp_path / "study", files, "--prefixes", "5")
    assert run("study", "serve", str(tmp_path / "study"), "--port", "70000") == 2
    assert not stream.closed


def test_serve_says_what_is_wrong(tmp_path, files, capsys):
    assert run("study", "serve", str(tmp_path / "nothing")) == 2
    assert "is not a study folder" in capsys.readouterr().err
    new(tmp_path / "study", files, "--prefixes", "5")
    assert run("study", "serve", str(tmp_path / "study"), "--database", "nosuch://x") == 2
    assert "SQLAlchemy knows no database called 'nosuch'" in capsys.readouterr().err
    assert run("study", "serve", str(tmp_path / "study"), "--port", "70000") == 2
    assert "cannot listen on port 70000" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["new", "serve", "analyse"])
def test_help_shows_an_example(verb, capsys):
    assert run("study", verb, "--help") == 0
    assert f"Example: scalegrad study {verb}" in " ".join(capsys.readouterr().out.split())


def test_a_missing_package_is_named_with_its_extra(tmp_path, files, capsys, monkeypatch):
    new(tmp_path / "study", files, "--prefixes", "5")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run("study", "serve", str(tmp_path / "study")) == 2
    assert 'uvicorn is needed here: pip install "scalegrad[study]"' in capsys.readouterr().err


def test_drawing_a_study_loads_no_web_server_and_no_database():
    code = "import sys, scalegrad.study; print([m for m in ('fastapi', 'sqlalchemy', 'uvicorn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_analyse_reads_a_folder_that_cannot_be_written_to(tmp_path, files, capsys, monkeypatch):
    folder = tmp_path / "study"
    assert new(folder, files, "--pair", "sg:mle", "--prefixes", "4", "--raters", "anna") == 0
    answers = Answers(default_database(folder), load_study(folder), quickest=0)
    answers.start("anna", "native")
    for number in range(1, 5):
        answers.answer("anna", number, 0, "first")
    answers.dispose()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anywhere
    capsys.readouterr()
    assert run("study", "analyse", str(folder), "--json") == 0
    assert json.loads(capsys.readouterr().out)["answered"] == 4
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
