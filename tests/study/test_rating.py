"""The rater's pages, as a browser without scripts meets them."""

from __future__ import annotations

import html
import re

import pytest
from sqlalchemy.exc import OperationalError

from scalegrad.study.answers import Answers
from scalegrad.study.folder import default_database
from tests.study.studies import made_folder
from tests.study.visitors import Visitor, fields, made_app


@pytest.fixture
def made(tmp_path):
    """A study of six pairs, two checks and two repeats, and its application."""
    study, links = made_folder(tmp_path / "study", prefixes=6, checks=2, repeats=2)
    return study, links, made_app(tmp_path / "study")


def stored(app):
    return [(answer.rater, answer.number, answer.choice) for answer in app.state.site.answers.all()]


def test_a_rater_goes_from_link_to_thanks_and_every_answer_is_the_one_given(made):
    study, links, app = made
    anna = Visitor(app)
    response = anna.get(links["rater-1"])
    assert (response.status_code, response.headers["location"]) == (303, "/rate")
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    welcome = anna.page()
    assert "You will read 10 beginnings" in welcome
    assert "there are no ties" in welcome
    anna.client.post("/start", data=fields(welcome, "/start") | {"english": "fluent"})
    given = []
    for number in range(1, 11):
        page = anna.page()
        first, second = study.texts("rater-1", number)
        assert f"<b>{number}</b> of 10" in page
        assert page.index(html.escape(first.strip())) < page.index(html.escape(second.strip()))
        choice = "second" if number % 3 else "first"
        given.append(("rater-1", number, choice))
        assert anna.answer(choice, f"comment {number}").headers["location"] == "/rate"
        assert stored(app) == given
    assert "All 10 of your answers are saved" in anna.page()
    assert app.state.site.answers.overview()[0].english == "fluent"


def test_a_study_of_one_pair_is_said_in_the_singular(tmp_path):
    _, links = made_folder(tmp_path / "study", prefixes=1, raters=["anna"])
    anna = Visitor(made_app(tmp_path / "study"))
    anna.get(links["anna"])
    welcome = anna.page()
    assert "You will read 1 beginning of a text" in welcome
    assert "Plan about 1 minute." in welcome
    anna.enter(links["anna"])
    anna.answer("first")
    assert "Your answer is saved." in anna.page()


def test_a_question_of_ones_own_stands_in_place_of_the_criteria(tmp_path):
    for name, options in (("usual", {}), ("own", {"question": "Welcher Text ist besser?"})):
        _, links = made_folder(tmp_path / name, **options)
        anna = Visitor(made_app(tmp_path / name))
        anna.get(links["rater-1"])
        welcome = anna.page()
        assert ("Readability" in welcome) == (name == "usual")
        assert ("Welcher Text ist besser?" in welcome) == (name == "own")


def test_no_system_is_named_anywhere_a_rater_looks(tmp_path):
    systems = ("zyxmodel", "qwvmodel")
    study, links = made_folder(tmp_path / "study", systems=systems, prefixes=4, checks=1, repeats=1)
    anna = Visitor(made_app(tmp_path / "study"))
    seen = [str(anna.get(links["rater-1"]).headers), anna.page()]
    anna.enter(links["rater-1"])
    for _ in range(len(study.sheets["rater-1"])):
        seen += [anna.page(), str(anna.answer("first").headers), anna.undo().text]
        seen += [anna.page(), str(anna.answer("second").headers)]
    seen += [anna.page(), anna.get("/").text]
    assert len(seen) > 30
    # Nor is a check or a repeat told apart from any other item.
    assert not re.search("zyxmodel|qwvmodel|right|wrong|swapped|repeat|check", "".join(seen))


def test_a_reload_a_replay_and_a_second_tab_change_nothing(made):
    _, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    page = anna.page()
    post = fields(page, "/answer") | {"choice": "first"}
    assert anna.client.post("/answer", data=post).headers["location"] == "/rate"
    assert anna.client.post("/answer", data=post).headers["location"] == "/rate"  # sent again: told the same
    assert anna.number() == 2
    other = anna.client.post("/answer", data=post | {"choice": "second"})
    assert other.headers["location"] == "/rate?note=kept"
    assert "the earlier answer stands" in anna.get("/rate?note=kept").text
    assert stored(app) == [("rater-1", 1, "first")]
    assert anna.page() == anna.page()


def test_a_tab_left_open_through_an_undo_is_out_of_date(made):
    _, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    old = fields(anna.page(), "/answer")
    anna.answer("first")
    ahead = fields(anna.page(), "/answer")
    anna.undo()
    assert anna.client.post("/answer", data=old | {"choice": "first"}).headers["location"] == "/rate?note=stale"
    assert anna.client.post("/answer", data=ahead | {"choice": "first"}).headers["location"] == "/rate?note=stale"
    assert stored(app) == []
    assert "was not recorded" in anna.get("/rate?note=stale").text


def test_undo_offers_the_comment_again(made):
    _, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    assert "/undo" not in anna.page()
    anna.answer("first", "line one\r\nline <two>\0")
    assert app.state.site.answers.all()[0].comment == "line one\nline <two>"
    assert anna.undo().headers["location"] == "/rate?note=undone"
    page = anna.page()
    assert '<details class="comment" open>' in page
    assert "line one\nline &lt;two&gt;</textarea>" in page
    anna.answer("second", "better")
    assert (app.state.site.answers.all()[0].choice, app.state.site.answers.all()[0].comment) == ("second", "better")


def test_the_link_brings_back_to_where_one_was_in_another_browser(made):
    _, links, app = made
    phone, desk = Visitor(app), Visitor(app)
    phone.enter(links["rater-1"])
    phone.answer("first")
    phone.answer("first")
    desk.get(links["rater-1"])
    assert desk.number() == 3
    desk.answer("second")
    assert phone.number() == 4  # the first browser's cookie and forms still work
    phone.answer("first")
    assert [choice for _, _, choice in stored(app)] == ["first", "first", "second", "first"]


def test_ties_only_where_the_study_allows_them(tmp_path):
    for ties in (False, True):
        _, links = made_folder(tmp_path / str(ties), ties=ties)
        app = made_app(tmp_path / str(ties))
        anna = Visitor(app)
        anna.enter(links["rater-1"])
        assert ('value="tie"' in anna.page()) == ties
        assert anna.answer("tie").status_code == (303 if ties else 422)
        assert len(stored(app)) == ties


def test_a_double_click_that_lands_on_the_next_page_is_not_an_answer(tmp_path):
    _, links = made_folder(tmp_path / "study")
    app = made_app(tmp_path / "study", quickest=30)
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    anna.answer("first")
    assert anna.answer("first").headers["location"] == "/rate?note=quick"
    assert "looked like a double click" in anna.get("/rate?note=quick").text
    assert stored(app) == [("rater-1", 1, "first")]


def test_a_closed_study_says_so_and_takes_nothing(made):
    _, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    anna.answer("first")
    post = fields(anna.page(), "/answer") | {"choice": "first"}
    app.state.site.answers.set_closed(True)
    assert anna.client.post("/answer", data=post).headers["location"] == "/rate"
    assert "Your 1 answer of 10 is saved" in anna.page()
    assert stored(app) == [("rater-1", 1, "first")]


def test_answers_survive_the_server(made, tmp_path):
    study, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    anna.answer("second")
    app.state.site.answers.dispose()
    again = Visitor(made_app(tmp_path / "study"))
    again.get(links["rater-1"])
    assert again.number() == 2
    reader = Answers(default_database(tmp_path / "study"), study)
    assert [answer.choice for answer in reader.all()] == ["second"]
    reader.dispose()


@pytest.mark.parametrize("error", [OperationalError("INSERT", {}, Exception("disk full")), MemoryError()])
def test_a_database_that_fails_gives_a_page_that_asks_to_send_the_answer_again(made, monkeypatch, error):
    _, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    post = fields(anna.page(), "/answer") | {"choice": "first"}

    def broken(*_):
        raise error

    monkeypatch.setattr(app.state.site.answers, "answer", broken)
    response = anna.client.post("/answer", data=post)
    assert response.status_code == 503
    assert "send it again" in response.text
    monkeypatch.undo()
    assert anna.client.post("/answer", data=post).headers["location"] == "/rate"


def test_a_mistake_in_the_server_gives_a_page_with_all_headers_and_no_trace(made, monkeypatch):
    _, links, app = made
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    monkeypatch.setattr(app.state.site.answers, "progress", lambda rater: 1 / 0)
    response = anna.get("/rate")
    assert response.status_code == 500
    assert "ZeroDivisionError" not in response.text
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
