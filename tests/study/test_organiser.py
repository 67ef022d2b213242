"""The organiser's page: progress always, results only when they may be seen."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest

from tests.study.studies import made_folder
from tests.study.visitors import Visitor, fields, made_app

SECRET_WORDS = ("sg over mle", "win rate", "Win rate", "AC1", "votes.csv")


@pytest.fixture
def made(tmp_path):
    """A study in which one rater has answered three items and the other none."""
    study, links = made_folder(tmp_path / "study", systems=("sg", "mle"), prefixes=6)
    app = made_app(tmp_path / "study")
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    for _ in range(3):
        anna.answer("first")
    return study, links, app


def test_progress_without_results_while_the_study_is_open(made):
    _, links, app = made
    organiser = Visitor(app)
    assert organiser.get(links["(organiser)"]).headers["location"] == "/organiser"
    page = organiser.get("/organiser").text
    assert "3 of 12 answers" in page
    assert "3 of 6" in page
    assert "not started" in page
    assert not any(word in page for word in SECRET_WORDS)
    assert organiser.get("/organiser/votes.csv").status_code == 403


def test_closing_shows_results_and_raw_votes_and_stops_answers(made):
    study, links, app = made
    organiser, anna = Visitor(app), Visitor(app)
    organiser.get(links["(organiser)"])
    form = fields(organiser.get("/organiser").text, "/organiser/close")
    assert organiser.client.post("/organiser/close", data=form).status_code == 303
    page = organiser.get("/organiser").text
    assert "The study is closed" in page
    assert "sg:mle" in page
    rows = list(csv.DictReader(io.StringIO(organiser.get("/organiser/votes.csv").text)))
    assert [row["winner"] for row in rows] == [study.chosen("rater-1", number, "first") for number in (1, 2, 3)]
    anna.get(links["rater-1"])
    assert "This study is closed" in anna.page()
    form = fields(page, "/organiser/open")
    organiser.client.post("/organiser/open", data=form)
    assert anna.number() == 4
    assert not any(word in organiser.get("/organiser").text for word in SECRET_WORDS)


def test_results_before_the_end_only_when_asked(tmp_path):
    _, links = made_folder(tmp_path / "study", systems=("sg", "mle"))
    app = made_app(tmp_path / "study", show_results=True)
    anna, organiser = Visitor(app), Visitor(app)
    anna.enter(links["rater-1"])
    anna.answer("first")
    organiser.get(links["(organiser)"])
    assert "sg over mle" in organiser.get("/organiser").text
    assert organiser.get("/organiser/votes.csv").status_code == 200


def test_a_closing_date_that_has_passed_shows_results_and_cannot_be_undone(tmp_path):
    made_at = datetime.now(UTC) - timedelta(minutes=1)
    _, links = made_folder(tmp_path / "study", systems=("sg", "mle"), closes=made_at)
    app = made_app(tmp_path / "study")
    organiser, anna = Visitor(app), Visitor(app)
    organiser.get(links["(organiser)"])
    page = organiser.get("/organiser").text
    assert "The study is closed" in page
    assert "/organiser/open" not in page
    anna.get(links["rater-1"])
    assert "takes no\nmore answers" in anna.page()


def test_raters_and_organiser_cannot_pass_for_each_other(made):
    _, links, app = made
    anna, organiser = Visitor(app), Visitor(app)
    anna.get(links["rater-1"])
    organiser.get(links["(organiser)"])
    close = fields(organiser.get("/organiser").text, "/organiser/close")
    assert anna.get("/organiser").status_code == 403
    assert anna.get("/organiser/votes.csv").status_code == 403
    assert anna.client.post("/organiser/close", data=close).status_code == 403
    assert organiser.get("/rate").status_code == 403
    assert anna.get(links["(organiser)"].replace("/o/", "/r/")).status_code == 404
    assert organiser.get(links["rater-1"].replace("/r/", "/o/")).status_code == 404
    # The organiser's cookie under the rater's name, and the other way about.
    site = app.state.site
    forger = Visitor(app)
    forger.client.cookies.set(site.cookie_name("rater"), organiser.client.cookies[site.cookie_name("organiser")])
    forger.client.cookies.set(site.cookie_name("organiser"), anna.client.cookies[site.cookie_name("rater")])
    assert forger.get("/rate").status_code == 403
    assert forger.get("/organiser").status_code == 403
    rater_form = {"form": site.secrets.form_token("rater-1")}
    assert organiser.client.post("/organiser/close", data=rater_form).status_code == 403
    assert not site.answers.closed()
