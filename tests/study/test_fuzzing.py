"""Requests made up from the OpenAPI, with a valid cookie and form token so that they reach the code behind them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.study.studies import made_study, write_study
from tests.study.visitors import made_app

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A study with everything in it: ties, checks, repeats."""
    folder = tmp_path_factory.mktemp("fuzz") / "study"
    write_study(made_study(prefixes=6, ties=True, checks=2, repeats=2, raters=["anna", "ben"]), folder)
    made = made_app(folder)
    # The pages themselves do not publish it; only the fuzzer needs it.
    made.add_api_route("/openapi.json", lambda: made.openapi(), include_in_schema=False)
    site = made.state.site
    site.answers.start("anna", "native")
    site.answers.start("ben", "native")
    site.answers.answer("ben", 1, 0, "second", "ben's own")
    return made


def cookies(site):
    return {
        site.cookie_name("rater"): site.secrets.cookie("anna"),
        site.cookie_name("organiser"): site.secrets.cookie("(organiser)"),
    }


def requests_for(app):
    """Requests to every operation, half of them as the OpenAPI has it and half of them not."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 11
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    return st.one_of([operation.as_strategy(generation_mode=mode) for operation in operations for mode in modes])


def test_no_request_breaks_the_server_or_leaves_a_wrong_record(app):
    site = app.state.site
    seen = Counter()

    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=requests_for(app))
    def fuzz(case):
        site.answers.set_closed(False)
        make_fit(site, case)
        before = site.answers.all()
        response = case.call(cookies=cookies(site))
        assert response.status_code < 500, response.text
        seen[case.method, case.path, response.status_code] += 1
        check_records(site, before, case, response, seen)

    fuzz()
    # It did reach the code behind the cookie and the token.
    assert seen["recorded"] > 5
    assert seen["undone"] > 0
    assert seen["POST", "/organiser/close", 303] > 0
    assert {status for _, _, status in filter(lambda key: len(key) == 3, seen)} >= {200, 303, 404, 422}


def make_fit(site, case):
    """Give the form its token, and let every other request fit the page that is shown."""
    if not isinstance(case.body, dict):
        return
    case.body["form"] = site.secrets.form_token("(organiser)" if "organiser" in case.path else "anna")
    progress = site.answers.progress("anna")
    if progress.answered > 8:  # make room
        site.answers.undo("anna", progress.answered, progress.last_attempt)
        progress = site.answers.progress("anna")
    if isinstance(case.body.get("attempt"), int) and case.body["attempt"] % 2 == 0:
        if "choice" in case.body:
            case.body |= {"number": progress.answered + 1, "attempt": progress.attempt}
        else:
            case.body |= {"number": max(progress.answered, 1), "attempt": progress.last_attempt}


def check_records(site, before, case, response, seen):
    after = site.answers.all()
    numbers = [answer.number for answer in after if answer.rater == "anna"]
    assert numbers == list(range(1, len(numbers) + 1))
    new = [answer for answer in after if answer not in before]
    gone = [answer for answer in before if answer not in after]
    assert all(answer.rater == "anna" for answer in new + gone)
    assert len(new) + len(gone) <= 1
    seen["recorded"] += len(new)
    seen["undone"] += len(gone)
    if new:
        assert (case.method, case.path, response.status_code) == ("POST", "/answer", 303)
        assert (new[0].number, new[0].choice) == (case.body["number"], case.body["choice"])
        assert "\0" not in new[0].comment
    if gone:
        assert (case.method, case.path) == ("POST", "/undo")
        assert (gone[0].number, gone[0].attempt) == (case.body["number"], case.body["attempt"])
    if (case.method, case.path) == ("POST", "/organiser/close") and response.status_code == 303:
        assert site.answers.closed()
