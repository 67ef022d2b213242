"""The study folder: whole, private, and the same when read again."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from scalegrad.study import load_study, write_study
from scalegrad.study.access import ORGANISER, Secrets
from scalegrad.study.folder import load_secrets
from tests.study.studies import made_folder, made_study


def test_a_study_is_the_same_when_read_again(tmp_path):
    study = made_study(checks=2, repeats=2, ties=True, closes=datetime(2030, 1, 2, 3, tzinfo=UTC), title="Übung <b>")
    write_study(study, tmp_path / "study")
    assert load_study(tmp_path / "study") == study


def test_nobody_else_may_read_it_and_tokens_stand_in_links_csv_alone(tmp_path):
    _, links = made_folder(tmp_path / "study")
    assert (tmp_path / "study").stat().st_mode & 0o777 == 0o700
    tokens = [link.rsplit("/", 1)[1] for link in links.values()]
    assert len(set(tokens)) == 3
    assert all(len(token) == 43 for token in tokens)  # 256 bits
    for file in (tmp_path / "study").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert any(token in file.read_text() for token in tokens) == (file.name == "links.csv")
    secret = json.loads((tmp_path / "study" / "secrets.json").read_text())["key"]
    assert secret not in (tmp_path / "study" / "study.json").read_text()


def test_links_lead_to_their_owners(tmp_path):
    _, links = made_folder(tmp_path / "study")
    secrets = load_secrets(tmp_path / "study")
    assert {who: secrets.who(link.rsplit("/", 1)[1]) for who, link in links.items()} == {
        "rater-1": "rater-1",
        "rater-2": "rater-2",
        "(organiser)": ORGANISER,
    }
    assert secrets.who("") is None
    assert secrets.who("wrong") is None


def test_an_existing_folder_and_a_bad_address_are_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "study").mkdir()
    with pytest.raises(ValueError, match="exists already"):
        made_folder(tmp_path / "study")
    for address in ("example.org", "https://example.org/study", "ftp://example.org", "https://"):
        with pytest.raises(ValueError, match="the address of the study must be"):
            write_study(made_study(), tmp_path / "other", base_url=address)
    assert [file.name for file in tmp_path.iterdir()] == ["study"]


def test_a_failure_half_way_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("scalegrad.study.folder._links_csv", lambda links: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_study(made_study(), tmp_path / "study")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "its format is None, not 1"),
        ("nonsense", "not a study this version reads"),
        ('{"format": 1}', "not a study this version reads"),
    ],
)
def test_what_is_no_study_is_said_to_be_none(tmp_path, text, message):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_study(tmp_path)


def test_a_sheet_that_names_a_missing_item_is_refused(tmp_path):
    made_folder(tmp_path / "study")
    file = tmp_path / "study" / "study.json"
    made = json.loads(file.read_text())
    made["sheets"]["rater-1"][0][0] = 99
    file.write_text(json.dumps(made))
    with pytest.raises(ValueError, match="names an item that is not there"):
        load_study(tmp_path / "study")


def test_missing_and_damaged_secrets(tmp_path):
    made_folder(tmp_path / "study")
    file = tmp_path / "study" / "secrets.json"
    file.write_text('{"key": "x"}')
    with pytest.raises(ValueError, match="is damaged"):
        load_secrets(tmp_path / "study")
    file.unlink()
    with pytest.raises(ValueError, match="has no secrets"):
        load_secrets(tmp_path / "study")


def test_cookies_are_signed_dated_and_of_one_study(monkeypatch):
    mine, other = Secrets("k" * 43, {"anna": "h"}, "o"), Secrets("j" * 43, {"anna": "h"}, "o")
    cookie = mine.cookie("anna")
    assert mine.asking(cookie) == "anna"
    assert other.asking(cookie) is None
    assert mine.asking(None) is mine.asking("") is mine.asking("x") is mine.asking("a.b.c") is None
    payload, stamp, signature = cookie.split(".")
    assert mine.asking(f"{payload}.{stamp}.{signature[::-1]}") is None
    assert mine.asking(f"{payload}.{stamp[::-1]}.{signature}") is None
    gone = Secrets("k" * 43, {"ben": "h"}, "o")  # the same key, but no such rater any more
    assert gone.asking(cookie) is None
    monkeypatch.setattr("scalegrad.study.access.COOKIE_SECONDS", -1)
    assert mine.asking(cookie) is None


def test_form_tokens_belong_to_one_person_of_one_study():
    mine, other = Secrets("k" * 43, {}, "o"), Secrets("j" * 43, {}, "o")
    token = mine.form_token("anna")
    assert mine.form_is_of("anna", token)
    assert not mine.form_is_of("ben", token)
    assert not other.form_is_of("anna", token)
    assert not mine.form_is_of("anna", "")
    assert not mine.form_is_of("anna", "é\ud800")
