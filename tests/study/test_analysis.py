"""Figures of a study: the paper's own counts, simulated raters with a known preference, and small cases by hand."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import statistics
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from scalegrad.metrics.significance import crossed_interval
from scalegrad.study import draw_study
from scalegrad.study.analysis import COVERAGE, analyse, sign_test_p
from scalegrad.study.answers import Answer
from scalegrad.study.report import analysis_as_dict, report_page, write_report
from scalegrad.study.votes import votes_csv, votes_of
from tests.study.studies import made_completions, made_study

START = "2026-11-15T10:{:02d}:{:02d}.000000+00:00"


def answers_by(study, prefer, seconds=5):
    """Answers of every rater: `prefer(rater, item, shown)` names the system chosen, or "tie"."""
    given = []
    for rater, sheet in study.sheets.items():
        for number, shown in enumerate(sheet, 1):
            item = study.items[shown.item]
            wanted = prefer(rater, item, shown)
            if wanted == "tie":
                choice = "tie"
            else:
                choice = "first" if wanted == item.systems[shown.swapped] else "second"
                assert study.chosen(rater, number, choice) == wanted
            clock = divmod(number * seconds, 60)
            given.append(Answer(rater, number, 0, choice, "", START.format(*clock)))
    return given


def paper_votes(both, neither, split, winner="sg", loser="mle"):
    """What each of two raters said of 100 prefixes, as the paper's figures have it."""
    columns = [(winner, winner)] * both + [(loser, loser)] * neither
    columns += [(winner, loser) if turn % 2 else (loser, winner) for turn in range(split)]
    return {f"rater-{place + 1}": [column[place] for column in columns] for place in (0, 1)}


@pytest.mark.parametrize(
    ("counts", "win_rate", "agreement", "ac1"), [((76, 8, 16), 84.0, 84.0, 0.78), ((60, 19, 21), 70.5, 79.0, 0.64)]
)
def test_the_papers_counts_give_the_papers_table(counts, win_rate, agreement, ac1):
    study = draw_study(made_completions(100, ("sg", "mle")), study_id="paper", prefixes=100)
    votes = paper_votes(*counts)
    figures = analyse(study, answers_by(study, lambda rater, item, _: votes[rater][int(item.prefix_id)])).pairs[0]
    assert figures.votes == 200
    assert round(100 * figures.win_rate.estimate, 1) == win_rate
    assert round(100 * figures.agreement, 1) == agreement
    assert round(figures.ac1, 2) == ac1
    assert (figures.sign_test.for_a, figures.sign_test.for_b, figures.sign_test.divided) == counts
    assert figures.sign_test.p_value < 1e-4
    assert figures.win_rate.low < win_rate / 100 < figures.win_rate.high
    # Standard error over prefixes, by hand: points of a prefix are 1, 0 or ½.
    both, neither, split = counts
    mean = win_rate / 100
    spread = math.sqrt((both * (1 - mean) ** 2 + neither * mean**2 + split * (0.5 - mean) ** 2) / 100 / 100)
    assert figures.win_rate.high - figures.win_rate.low == pytest.approx(2 * 1.96 * spread, rel=0.12)


def simulated(preference, seed, raters=3, prefixes=100, spread=0.15):
    """Raters who prefer sg with a chance that differs by `spread` from rater to rater, and from prefix to prefix."""
    study = draw_study(
        made_completions(prefixes, ("sg", "mle")),
        study_id="sim",
        prefixes=prefixes,
        raters=[f"r{i}" for i in range(raters)],
        seed=seed,
    )
    generator = random.Random(seed)
    shift = {name: generator.gauss(0, spread) for name in [*study.sheets, *map(str, range(prefixes))]}

    def prefer(rater, item, _):
        return "sg" if generator.random() < preference + shift[rater] + shift[item.prefix_id] else "mle"

    return study, answers_by(study, prefer)


def population_rate(preference, spread=0.15):
    """The win rate over all raters and prefixes there could be: a chance cannot leave 0 … 1."""
    chances = [NormalDist(preference, spread * 2**0.5).inv_cdf((i + 0.5) / 10_000) for i in range(10_000)]
    return statistics.fmean(min(1.0, max(0.0, chance)) for chance in chances)


def covered(raters, preference, studies, prefixes=100, spread=0.15):
    """In how many of simulated studies the interval holds the win rate of the population."""
    generator = np.random.default_rng(raters)
    truth = population_rate(preference, spread)
    count = 0
    for _ in range(studies):
        chances = preference + generator.normal(0, spread, (raters, 1)) + generator.normal(0, spread, prefixes)
        interval = crossed_interval((generator.random((raters, prefixes)) < chances).astype(float))
        count += interval.low <= truth <= interval.high
    return count


@pytest.mark.parametrize("preference", [0.5, 0.7, 0.85])
def test_intervals_hold_the_truth_where_raters_differ(preference):
    """200 studies: 95% are 190; fewer than 180 of 10 raters has a chance below .2%."""
    assert covered(10, preference, studies=200) >= 180


@pytest.mark.parametrize("raters", COVERAGE)
def test_the_report_says_what_intervals_of_few_raters_hold(raters):
    shares = {preference: covered(raters, preference, studies=200) / 200 for preference in (0.5, 0.7, 0.85)}
    assert statistics.fmean(shares.values()) == pytest.approx(COVERAGE[raters], abs=0.025), shares


def test_whole_studies_recover_the_preference_and_hold_it():
    truth = population_rate(0.7)
    figures = [analyse(*simulated(0.7, seed, raters=10, prefixes=40)).pairs[0].win_rate for seed in range(40)]
    # Standard error of one study: √(.0225 / 10 + .0225 / 40 + .2 / 400) = .058.
    assert statistics.fmean(interval.estimate for interval in figures) == pytest.approx(truth, abs=4 * 0.058 / 40**0.5)
    assert sum(interval.low <= truth <= interval.high for interval in figures) >= 33


def test_few_raters_are_said_to_be_few():
    notes = {raters: analyse(*simulated(0.7, 1, raters=raters, prefixes=20)).notes for raters in (1, 3, 10)}
    assert "not for other people" in notes[1][0]
    assert "3 raters are few" in notes[3][0]
    assert f"{COVERAGE[3]:.0%} with 3" in notes[3][0]
    assert notes[10] == ()
    assert "3 raters are few" in report_page(analyse(*simulated(0.7, 1, raters=3, prefixes=20)))


def test_a_missing_vote_and_a_single_one_have_an_interval():
    study, answers = simulated(0.7, 1, raters=3, prefixes=20)
    whole = analyse(study, answers).pairs[0].win_rate
    most = analyse(study, answers[:-15]).pairs[0].win_rate
    assert 0 <= most.low < most.estimate < most.high <= 1
    assert most.high - most.low == pytest.approx(whole.high - whole.low, rel=0.5)
    (one,) = analyse(study, answers[:1]).pairs
    assert (one.win_rate.low, one.win_rate.high) == (0.0, 1.0)


def test_checks_that_reuse_prefixes_of_the_study_are_noted_in_the_report():
    spare = made_study(prefixes=30, checks=10)
    reused = made_study(prefixes=35, checks=8)
    assert analyse(spare, []).notes == ()
    (note,) = analyse(reused, []).notes
    assert "3 of 8 attention checks reuse a prefix" in note
    assert note in report_page(analyse(reused, []))


def test_no_preference_is_seldom_significant_and_a_strong_one_always():
    p_values = [analyse(*simulated(0.5, seed, spread=0)).pairs[0].sign_test.p_value for seed in range(60)]
    assert sum(p < 0.05 for p in p_values) <= 8  # 3 expected at most; 9 or more has a chance below .3%
    strong = [analyse(*simulated(0.8, seed)).pairs[0].sign_test.p_value for seed in range(10)]
    assert max(strong) < 0.001


def test_sides_do_not_matter_to_a_rater_who_knows_what_they_want():
    study = made_study(systems=("sg", "mle"), prefixes=40)
    analysis = analyse(study, answers_by(study, lambda rater, item, shown: "sg"))
    (pair,) = analysis.pairs
    assert (pair.wins_a, pair.wins_b) == (80, 0)
    assert pair.win_rate.estimate == pair.agreement == pair.ac1 == 1.0
    assert math.isnan(pair.kappa)  # one label only: kappa has nothing to go by
    assert analysis.position.share == 0.5


def test_a_rater_who_always_picks_the_first_is_found_out():
    study = made_study(systems=("sg", "mle"), prefixes=40, checks=8, repeats=10)

    def prefer(rater, item, shown):
        good = item.systems[0] if item.kind == "check" else "sg"
        return item.systems[shown.swapped] if rater == "rater-1" else good

    analysis = analyse(study, answers_by(study, prefer), english={"rater-2": "native"})
    lazy, keen = analysis.raters
    assert (lazy.first_share, lazy.checks, lazy.checks_failed) == (1.0, 8, 4)
    assert (lazy.repeats, lazy.repeats_alike) == (10, 0)
    assert lazy.win_rates == {"sg over mle": 0.5}
    assert (keen.first_share, keen.checks_failed, keen.repeats_alike, keen.english) == (0.5, 0, 10, "native")
    assert keen.seconds == 5.0
    assert analysis.position.first == 60
    assert analysis.position.p_value == pytest.approx(sign_test_p(60, 20))
    without = analyse(study, answers_by(study, prefer), most_failed=3)
    assert [rater.left_out for rater in without.raters] == [True, False]
    assert without.pairs[0].votes == 40
    assert without.pairs[0].win_rate.estimate == 1.0
    assert math.isnan(without.pairs[0].agreement)  # one rater is left


def test_ties_count_half_and_are_a_category_of_their_own():
    study = made_study(systems=("sg", "mle"), prefixes=4, ties=True)
    votes = {"rater-1": ["sg", "sg", "tie", "mle"], "rater-2": ["sg", "tie", "tie", "sg"]}
    place = {item.prefix_id: at for at, item in enumerate(study.items)}
    analysis = analyse(study, answers_by(study, lambda rater, item, _: votes[rater][place[item.prefix_id]]))
    (pair,) = analysis.pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (4, 1, 3)
    assert pair.win_rate.estimate == (4 + 1.5) / 8
    assert pair.agreement == 0.5
    # π = sg 4/8, mle 1/8, tie 3/8; p_e = (¼ + 7/64 + 15/64) / 2 = 19/64; AC1 = (½ − 19/64) / (45/64) = 13/45.
    assert pair.ac1 == pytest.approx(13 / 45)
    # Cohen: rater-1 sg ½ mle ¼ tie ¼, rater-2 sg ½ tie ½: p_e = ¼ + ⅛ = ⅜; (½ − ⅜) / (⅝) = ⅕.
    assert pair.kappa == pytest.approx(0.2)
    assert (pair.sign_test.for_a, pair.sign_test.for_b, pair.sign_test.divided) == (2, 0, 2)
    assert pair.sign_test.p_value == 0.5


def test_a_study_half_done_and_one_not_begun():
    study = made_study(systems=("sg", "mle", "ul"), pairs=(("sg", "mle"), ("sg", "ul")), prefixes=10)
    empty = analyse(study, [])
    assert empty.pairs == ()
    assert math.isnan(empty.position.share)
    assert (empty.answered, empty.asked) == (0, 40)
    half = [
        answer for answer in answers_by(study, lambda *_: "sg") if answer.rater == "rater-1" and answer.number <= 10
    ]
    analysis = analyse(study, half)
    assert sum(pair.votes for pair in analysis.pairs) == 10
    assert all(math.isnan(pair.agreement) and math.isnan(pair.alpha) for pair in analysis.pairs)
    assert analysis_as_dict(analysis)["pairs"][0]["agreement"] is None
    json.dumps(analysis_as_dict(analysis), allow_nan=False)
    assert "–" in report_page(analysis)
    with pytest.raises(ValueError, match="most_failed must be 0 or more, not -1"):
        analyse(study, half, most_failed=-1)


def test_one_answer_is_said_in_the_singular():
    study = made_study(prefixes=1, raters=["anna"])
    page = report_page(analyse(study, answers_by(study, lambda *_: "sg")))
    assert "1 of 1 answer." in page
    always_first = [replace(answer, choice="first") for answer in answers_by(study, lambda *_: "sg")]
    assert "was chosen 1 time of 1 " in report_page(analyse(study, always_first))


@pytest.mark.parametrize(("one", "other"), [(0, 0), (7, 3), (3, 7), (50, 50), (12, 88), (200, 160)])
def test_the_sign_test_against_exact_arithmetic(one, other):
    n, few = one + other, min(one, other)
    exact = min(1.0, 2 * sum(math.comb(n, k) for k in range(few + 1)) / 2**n)
    assert sign_test_p(one, other) == pytest.approx(exact, rel=1e-9)


def test_forty_thousand_votes_are_no_trouble():
    assert sign_test_p(20_300, 19_700) == pytest.approx(0.0027, abs=2e-4)  # z = 600/200 = 3


def rows_of(file):
    with file.open(newline="") as rows:
        return list(csv.DictReader(rows))


def test_votes_and_reports_on_disk(tmp_path):
    study = made_study(systems=("sg", "mle"), prefixes=6, checks=1, repeats=1)
    given = answers_by(study, lambda rater, item, shown: item.systems[0])
    given[0] = Answer(*[*vars(given[0]).values()][:4], '=1+1 "quoted", <b>', given[0].answered_at)
    analysis = analyse(study, given)
    write_report(analysis, votes_of(study, given), tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "pairs.csv",
        "raters.csv",
        "report.html",
        "votes.csv",
    ]
    rows = rows_of(tmp_path / "out" / "votes.csv")
    assert len(rows) == 16
    assert rows[0]["comment"] == '\'=1+1 "quoted", <b>'  # a spreadsheet must not take it for a formula
    assert {row["kind"] for row in rows} == {"pair", "check", "repeat"}
    assert {row["winner"] for row in rows} == {"sg", "right"}
    for row in rows:
        assert (row["choice"] == "first") == (row["shown_first"] == row["winner"])
    (pair,) = rows_of(tmp_path / "out" / "pairs.csv")
    assert (pair["a"], pair["wins_a"], float(pair["win_rate_estimate"])) == ("sg", "12", 1.0)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "sg:mle" in page
    assert "100.0%" in page
    assert page.count("<circle") == 1
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert votes_csv([]).startswith("rater,number,kind")


def test_a_report_of_no_votes_has_the_columns_of_one_with_votes(tmp_path):
    study = made_study(systems=("sg", "mle"), prefixes=6)
    given = answers_by(study, lambda *_: "sg")
    for name, answers in (("none", []), ("all", given)):
        write_report(analyse(study, answers), votes_of(study, answers), tmp_path / name)
    for file in ("pairs.csv", "raters.csv", "votes.csv"):
        header = (tmp_path / "none" / file).read_text().splitlines()[0]
        assert header == (tmp_path / "all" / file).read_text().splitlines()[0]
    assert rows_of(tmp_path / "none" / "pairs.csv") == []


def test_a_report_is_as_readable_as_other_files_and_leaves_nothing_unfinished(tmp_path, monkeypatch):
    study = made_study(systems=("sg", "mle"), prefixes=6)
    before = os.umask(0o022)
    try:
        write_report(analyse(study, []), [], tmp_path / "whole")
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "whole").iterdir()} == {0o644}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(analyse(study, []), [], tmp_path / "full")
    assert list((tmp_path / "full").iterdir()) == []


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0, math.nan])
def test_a_level_is_a_share_also_before_there_are_votes(level):
    with pytest.raises(ValueError, match=f"^level must be a share between 0 and 1, not {level:g}$"):
        analyse(made_study(systems=("sg", "mle"), prefixes=6), [], level=level)
