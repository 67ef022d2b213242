"""The paper's printed beginnings: found in their corpora, continued by every run, beside the paper's texts."""

import re
from dataclasses import replace

import pytest

from paper.catalogue import find, prepare
from paper.examples import SAMPLES, examples, printed_prefixes
from paper.open_ended_scale import GRID, MAIN
from paper.outcome import NotGiven
from paper.printed_texts import MLE, PRINTED
from scalegrad.runs import Run, run_name
from tests.paper.test_open_ended import rep_1

SOLD = "last resort who were criticized after the n crash once more had to sell \n heavy selling"
PTB = f" no trading \n {SOLD} went on for days \n"


def test_the_beginnings_stand_in_wikitext():
    found, missing = printed_prefixes({})
    assert [one.tables for one, _, _ in found] == [(19,), (6, 20)]
    words = [re.findall(r"[^\W\d_]+", prefix) for _, prefix, _ in found]
    assert words[0][:6] == ["Robert", "Boulter", "is", "an", "English", "film"]
    assert [len(own) for own in words] == [29, 36]  # as the paper prints them, but for one <unk> that it leaves out
    assert found[0][2].startswith(" role in the play Herons")
    assert [sentence.split(" needs")[0] for sentence in missing] == ["Table 27", "Table 28"]


def test_those_of_other_corpora_are_found_in_what_users_bring(tmp_path):
    (tmp_path / "ptb.test.txt").write_text(PTB)
    reviews = "A fine film.\nOne of the other reviewers has mentioned Oz.<br /><br />It has scenes of violence, too.\n"
    (tmp_path / "reviews.txt").write_text(reviews)
    found, missing = printed_prefixes({"ptb": str(tmp_path), "imdb": str(tmp_path / "reviews.txt")})
    assert missing == []
    assert [(prefix, rest) for one, prefix, rest in found if one.corpus != "wikitext-103"] == [
        (SOLD, " went on for days \n"),
        ("One of the other reviewers has mentioned Oz. It has scenes of violence", ", too."),
    ]
    (tmp_path / "reviews.txt").write_text("Dull.\n")
    _, missing = printed_prefixes({"imdb": str(tmp_path / "reviews.txt")})
    assert "reviews.txt does not hold its beginning, “One of the other reviewers has mentioned …”" in missing[1]


def test_the_papers_texts_show_what_the_paper_says():
    for one in PRINTED:
        mle, ul, sg = map(rep_1, one.texts.values())
        assert sg < min(mle, ul)
    assert rep_1(PRINTED[0].texts[MLE]) > 0.7


def test_every_objective_continues_them_once(setup, tmp_path):
    (tmp_path / "ptb.txt").write_text(PTB)
    setup = replace(setup, data={"ptb": str(tmp_path / "ptb.txt")})
    assert prepare(find(["examples"]), setup) == ({}, {})
    (table,) = examples(setup).tables
    assert table.texts
    assert table.title == "The beginnings of tables 6, 19, 20, 27, continued"
    rows = {row.label: row for row in table.comparison.systems}
    assert list(rows)[:7] == ["MLE", "UL α=0.5", "UL α=1.0", "UL α=1.5", "SG γ=0.8", "SG γ=0.5", "SG γ=0.2"]
    assert [label for label in rows if "in the paper" in label][-1] == "SG γ=0.2, in the paper"
    for label, row in rows.items():
        assert len(row.samples) == 3
        values = [rep_1(sample.continuation) for sample in row.samples]
        assert row.figures["rep_1"] == pytest.approx(sum(values) / 3), label
    folder = setup.open_ended
    runs = [Run.open(folder / run_name(name, 0)) for name in (*MAIN, *GRID)]
    written = {run.path.name: (run.path / SAMPLES).stat().st_mtime_ns for run in runs}
    assert [record["continuation"] for record in runs[0].load(SAMPLES)] == [s.continuation for s in rows["MLE"].samples]
    prepare(find(["examples"]), setup)
    (again,) = examples(setup).tables
    assert {run.path.name: (run.path / SAMPLES).stat().st_mtime_ns for run in runs} == written
    assert again.comparison == table.comparison
    prepare(find(["examples"]), replace(setup, data={}))
    fewer = examples(replace(setup, data={}))
    assert len(fewer.tables[0].comparison.systems[0].samples) == 2


def test_only_what_is_there_is_shown(setup, tmp_path):
    with pytest.raises(NotGiven, match="no run has continued these beginnings yet"):
        examples(replace(setup, out=tmp_path, only_done=True))
