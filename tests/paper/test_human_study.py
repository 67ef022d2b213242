"""The human study: drawn from runs' texts after the paper's design, and never a figure that nobody gave."""

import json
from dataclasses import replace

import pytest

from paper import human_study
from paper.open_ended_scale import MAIN
from paper.outcome import NotGiven, Setup
from scalegrad.runs import Run, samples_name
from scalegrad.study import load_study
from scalegrad.study.answers import Answers
from scalegrad.study.folder import default_database

FILE = f"samples/{samples_name('wikitext-103', 'test', 'greedy')}"
TEXTS = {"mle": " a dog @-@ house , a dog", "ul=1.0": " a cat 's house", "sg=0.2": " a quiet harbour ."}


@pytest.fixture
def study_of(tmp_path, monkeypatch):
    """study_of(prefixes): the outcome, from hand-made runs that wrote after so many prefixes."""
    runs = {}

    def make(prefixes, texts=TEXTS):
        for objective in MAIN:
            run = runs.setdefault(objective, Run.create(tmp_path / objective, {"objective": objective}))
            lines = [{"id": i, "prefix": f"In {1900 + i} , there was", "continuation": f"{texts[objective]} {i}"}
                     for i in range(prefixes)]  # fmt: skip
            run.save(FILE, lines)
        monkeypatch.setattr(human_study, "main_runs", lambda setup: runs)
        return human_study.human_study(Setup("smoke", tmp_path / "out"))

    return make


def test_the_papers_design_and_no_figures_of_ours(study_of, tmp_path):
    found = study_of(130)
    study = load_study(tmp_path / "out" / "human-study" / "study")
    assert study.pairs == (("SG", "MLE"), ("SG", "UL"))
    assert [len(sheet) for sheet in study.sheets.values()] == [200, 200]  # 2 raters × 2 pairs × 100 prefixes
    assert len({item.prefix_id for item in study.items}) == 100
    assert study.ties is False
    item = next(item for item in study.items if item.systems == ("SG", "MLE"))
    assert item.prefix == f"In {1900 + int(item.prefix_id)}, there was"
    assert item.texts == (f"a quiet harbour. {item.prefix_id}", f"a dog-house, a dog {item.prefix_id}")
    rows = found.tables[0].comparison.systems
    assert [(row.kind, row.label) for row in rows] == [
        ("paper", "SG vs MLE, in the paper"), ("paper", "SG vs UL, in the paper")
    ]  # fmt: skip
    assert rows[0].figures == {"win_rate": 0.84, "agreement": 0.84, "ac1": 0.78}
    assert any("Nobody has rated yet" in sentence for sentence in found.notes)


def test_few_prefixes_make_a_small_study_and_equal_texts_none(study_of, tmp_path):
    alike = study_of(3, dict.fromkeys(TEXTS, " the same"))
    assert "continue every prefix alike" in alike.notes[0]
    assert not (tmp_path / "out" / "human-study" / "study").exists()
    assert alike.made["prefixes"] == 0
    few = study_of(3)
    assert "A study of 3 prefixes a pair (the paper's has 100; there are 3 to draw from)" in few.notes[0]


def test_answers_that_people_gave_are_analysed(study_of, tmp_path):
    study_of(10)
    folder = tmp_path / "out" / "human-study" / "study"
    study = load_study(folder)
    answers = Answers(default_database(folder), study, quickest=0)
    for rater, wanted in (("rater-1", {"MLE": 0, "UL": 0}), ("rater-2", {"MLE": 3, "UL": 10})):
        answers.start(rater, "native")
        for number in range(1, 21):  # SG wins, but for the first so many of the second rater's
            shown, item = study.shown(rater, number)
            other = item.systems[1]
            wins = wanted[other] <= 0
            wanted[other] -= 1
            answers.answer(rater, number, 0, "first" if shown.swapped != wins else "second")
    rows = {row.label: row for row in study_of(10).tables[0].comparison.systems}
    assert rows["SG vs MLE"].figures["win_rate"] == pytest.approx(17 / 20)
    assert rows["SG vs MLE"].figures["agreement"] == pytest.approx(7 / 10)
    assert rows["SG vs MLE"].figures["votes"] == 20
    share = 17 / 20  # Gwet: chance agreement of two categories is 2π(1 − π)
    chance = 2 * share * (1 - share)
    assert rows["SG vs MLE"].figures["ac1"] == pytest.approx((0.7 - chance) / (1 - chance))
    assert rows["SG vs UL"].figures["win_rate"] == pytest.approx(1 / 2)
    assert rows["SG vs UL"].figures["agreement"] == 0
    low, high = rows["SG vs MLE"].intervals["win_rate"]
    assert low < 17 / 20 < high
    assert not any("Nobody" in sentence for sentence in study_of(10).notes)
    assert rows["SG vs MLE"].kind == "human"


def test_a_study_that_is_there_is_never_drawn_again(study_of, tmp_path):
    study_of(5)
    folder = tmp_path / "out" / "human-study" / "study"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "drawn from other texts" not in " ".join(study_of(5).notes)
    again = study_of(5, TEXTS | {"mle": " something else"})
    assert "was drawn from other texts than the runs have now; it is left as it is" in again.notes[0]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert json.loads((folder / "study.json").read_text())["pairs"] == [["SG", "MLE"], ["SG", "UL"]]


def test_without_texts_there_is_no_study(setup, tmp_path):
    with pytest.raises(NotGiven, match="have no greedy texts yet"):
        human_study.human_study(replace(setup, out=tmp_path, only_done=True))
    assert list(tmp_path.iterdir()) == []
