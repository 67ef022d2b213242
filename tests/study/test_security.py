"""Forged, expired and foreign tokens, forms of others, large bodies, wrong links, logs, and texts that attack."""

from __future__ import annotations

import html
import logging
import re

import pytest

from scalegrad.study import Completions, draw_study
from scalegrad.study.web.guards import MOST_BYTES, HideLinks, hide_links_in_logs
from tests.study.studies import made_folder
from tests.study.visitors import Visitor, fields, made_app


@pytest.fixture
def made(tmp_path):
    _, links = made_folder(tmp_path / "study")
    return links, made_app(tmp_path / "study")


@pytest.fixture
def anna(made):
    """A rater who has begun."""
    links, app = made
    visitor = Visitor(app)
    visitor.enter(links["rater-1"])
    return visitor


def test_every_response_carries_the_headers(made, anna):
    links, _ = made
    for path in ("/", "/rate", links["rater-2"], "/r/wrong", "/nowhere", "/organiser", "/static/study.css"):
        headers = anna.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == ("public, max-age=3600" if "static" in path else "no-store")
        assert "strict-transport-security" not in headers
    assert anna.client.get("https://testserver/").headers["strict-transport-security"] == "max-age=31536000"


def test_the_cookie_is_secure_over_https_only(made):
    links, app = made
    assert "Secure" not in Visitor(app).get(links["rater-1"]).headers["set-cookie"]
    assert "Secure" in Visitor(app).client.get("https://testserver" + links["rater-1"]).headers["set-cookie"]


def test_no_page_has_a_script_style_or_handler_in_line(made, anna):
    pages = [anna.page(), anna.get("/").text, anna.get("/organiser").text]
    for page in pages:
        assert not re.search(r"<script(?! src=\"/static/)|<style| style=| on\w+=|javascript:", page)
        assert not re.search(r'(?:src|href)="(?!/)', page)  # nothing from elsewhere


@pytest.mark.parametrize("path", ["/rate", "/organiser", "/organiser/votes.csv"])
def test_nothing_without_a_cookie(made, path):
    assert Visitor(made[1]).get(path).status_code == 403


def test_forged_expired_and_foreign_cookies_open_nothing(made, tmp_path, monkeypatch):
    app = made[1]
    name = app.state.site.cookie_name("rater")
    good = app.state.site.secrets.cookie("rater-1")
    made_folder(tmp_path / "other", study_id="other")
    foreign = made_app(tmp_path / "other").state.site.secrets.cookie("rater-1")
    for cookie in (good[:-2] + "xx", foreign, "rater-1", good.split(".")[0], "\x7f%00;", "." * 9):
        visitor = Visitor(app)
        visitor.client.cookies.set(name, cookie)
        assert visitor.get("/rate").status_code == 403
        form = {"form": app.state.site.secrets.form_token("rater-1"), "english": "native"}
        assert visitor.client.post("/start", data=form).status_code == 403
    visitor = Visitor(app)
    visitor.client.cookies.set(name, good)
    assert visitor.get("/rate").status_code == 200
    monkeypatch.setattr("scalegrad.study.access.COOKIE_SECONDS", -1)
    assert visitor.get("/rate").status_code == 403


def test_a_form_without_its_token_or_with_anothers_is_refused_and_records_nothing(made, anna):
    _, app = made
    post = fields(anna.page(), "/answer") | {"choice": "first"}
    stranger = app.state.site.secrets.form_token("rater-2")
    for form in ("0" * 64, stranger, "é"):
        assert anna.client.post("/answer", data=post | {"form": form}).status_code == 403
    for form in ("", "0" * 65):
        assert anna.client.post("/answer", data=post | {"form": form}).status_code == 422
    del post["form"]
    assert anna.client.post("/answer", data=post).status_code == 422
    assert app.state.site.answers.all() == []


def test_the_form_of_one_rater_never_counts_for_the_next_in_the_same_browser(made, anna):
    """Two people share a computer: the first one's tab is still open when the second opens their link."""
    links, app = made
    post = fields(anna.page(), "/answer") | {"choice": "first"}
    anna.enter(links["rater-2"])
    assert anna.client.post("/answer", data=post).status_code == 403
    assert app.state.site.answers.all() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"number": "0"},
        {"number": "-1"},
        {"number": "1e3"},
        {"number": "9" * 30},
        {"number": "٣"},
        {"attempt": "-1"},
        {"attempt": "x"},
        {"choice": "third"},
        {"choice": ""},
        {"comment": "x" * 5000},
        {"number": ""},
    ],
)
def test_malformed_answers_get_a_page_and_record_nothing(made, anna, changes):
    response = anna.answer("first", changes=changes)
    # The Arabic digit three is a number to Python: it is then not the number on the page.
    assert response.status_code == 422 or response.headers["location"] == "/rate?note=stale"
    assert made[1].state.site.answers.all() == []


def test_odd_fields_and_repeated_fields_do_no_harm(made, anna):
    form = fields(anna.page(), "/answer")
    body = "&".join(f"{name}={value}" for name, value in form.items())
    headers = {"content-type": "application/x-www-form-urlencoded"}
    odd = body + "&choice=first&choice=second&system=sg&rater=rater-2&%ff=%fe&comment=%00%ed%a0%80"
    response = anna.client.post("/answer", content=odd, headers=headers)
    assert response.status_code == 303
    (stored,) = made[1].state.site.answers.all()
    assert (stored.rater, stored.number) == ("rater-1", 1)
    assert stored.choice in ("first", "second")
    assert "\0" not in stored.comment


def test_large_bodies_are_turned_away_however_they_come(made, anna):
    form = fields(anna.page(), "/answer") | {"choice": "first", "comment": "x" * MOST_BYTES}
    assert anna.client.post("/answer", data=form).status_code == 413
    headers = {"content-type": "application/x-www-form-urlencoded"}

    def pieces():
        for _ in range(100):
            yield b"comment=" + b"x" * 10_000 + b"&"

    assert anna.client.post("/answer", content=pieces(), headers=headers).status_code == 413
    assert made[1].state.site.answers.all() == []
    assert anna.number() == 1


def test_only_forms_are_read(made, anna):
    form = fields(anna.page(), "/answer") | {"choice": "first"}
    assert anna.client.post("/answer", json=form).status_code == 415
    assert anna.client.post("/answer", data=form, files={"comment": ("x.txt", b"x")}).status_code == 415
    assert made[1].state.site.answers.all() == []


def test_wrong_links_lock_nobody_out(made):
    """A class behind one address: whatever others there try, a valid link opens."""
    links, app = made
    school = [Visitor(app, "198.51.100.9") for _ in range(2)]
    statuses = {school[0].get(f"/{kind}/guess{turn}").status_code for turn in range(50) for kind in "ro"}
    assert statuses == {404}
    assert school[1].get(links["rater-1"]).status_code == 303
    assert school[1].get(links["(organiser)"]).status_code == 303


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_no_way_out_of_the_static_folder(made, path):
    assert Visitor(made[1]).get(path).status_code == 404


def test_links_are_hidden_in_every_log(made, caplog, monkeypatch):
    links, _ = made
    token = links["rater-1"].rsplit("/", 1)[1]
    hide_links_in_logs()
    hide_links_in_logs()
    for name in ("uvicorn", "uvicorn.access", "uvicorn.error", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        assert sum(isinstance(known, HideLinks) for known in logger.filters) == 1
        monkeypatch.setattr(logger, "propagate", True)
        with caplog.at_level(logging.INFO, logger=name):
            logger.info('%s - "%s %s HTTP/%s" %d', "1.2.3.4:5", "GET", f"/r/{token}?x=1", "1.1", 303)
            logger.info("scope=%s", {"path": f"/r/{token}", "raw_path": f"/o/{token}".encode()})
            logger.info(f"failed on /r/{token}")
    assert token not in caplog.text
    hidden = {(record.name, record.getMessage()) for record in caplog.records if "/r/(hidden)" in record.getMessage()}
    assert len(hidden) == 12  # each of the three lines of each logger, however many handlers caught it
    assert '"GET /r/(hidden)?x=1 HTTP/1.1" 303' in caplog.text


HOSTILE = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "breakout": '</textarea></form></div>"><h1>owned</h1>',
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "bidi": "safe \u202edesrever\u202c and \u2066isolated\u2069 text",
    "control": "bell \x07 null-ish \x01 escape \x1b[31m",
    "long": "word " * 2000,
    "unbroken": "a" * 10_000,
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 👍🏽",
    "lines": "one\n\n\n\n\n\n\ntwo\n\nthree",
    "empty": "",
    "blank": " \n\t\n ",
    "zalgo": "z" + "\u0301" * 200 + "algo",
    "entities": "&lt;b&gt; &amp;amp; &#x3c;",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_are_shown_as_text(tmp_path, kind):
    text = HOSTILE[kind]
    completions = Completions({"1": f"prefix {text}"}, {"one": {"1": text}, "two": {"1": "plain"}})
    study = draw_study(completions, study_id="x", prefixes=1)
    _, links = made_folder(tmp_path / "study", study)
    anna = Visitor(made_app(tmp_path / "study"))
    anna.enter(links["rater-1"])
    page = anna.page()
    assert page.count("<script") == 1  # our own
    assert "<img" not in page
    assert "<h1" not in page
    assert page.count("<form") == 1
    for unseen in "\u202e\u2066\x07\x01\x1b":
        assert unseen not in page
    # What is shown, put back together without its marks, is the text.
    shown = "".join(re.findall(r'<div class="text".*?</div>', page, re.DOTALL))
    shown = re.sub(r'<span class="mark">[^<]*</span>', "", shown)
    shown = html.unescape(re.sub(r"<[^>]*>", "", shown))
    kept = re.sub("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f]", "", text).replace("\u0301" * 200, "\u0301" * 4)
    kept = re.sub(r"\n{4,}", "\n\n", kept).strip()
    assert kept in shown
    marks = re.findall(r'<span class="mark">([^<]*)</span>', page)
    expected = {"bidi": "U+202E", "control": "U+001B", "lines": "6 empty lines", "empty": "no text", "blank": "no text"}
    assert (expected.get(kind) in marks) == (kind in expected)
    anna.answer("first", comment=text[:2000])
    assert anna.undo().status_code == 303
    assert html.escape("</textarea>") in anna.page() or kind != "breakout"


def test_only_known_notes_are_shown(made, anna):
    page = anna.get("/rate?note=%3Cscript%3E").text
    assert 'role="status"' not in page
    assert anna.get("/rate?note=" + "x" * 100).status_code == 422
