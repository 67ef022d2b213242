"""Answers: each recorded once, none lost, whatever comes twice, late, or at the same time."""

from __future__ import annotations

import secrets
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalegrad.study.answers import Answers, Outcome, open_answers
from scalegrad.study.database import open_engine
from tests.study.studies import made_folder, made_study


@pytest.fixture
def answers(database, fresh_id):
    store = Answers(database, made_study(study_id=fresh_id, prefixes=8), quickest=0)
    for rater in store.study.sheets:
        store.start(rater, "native")
    yield store
    store.dispose()


def test_an_answer_is_there_with_all_its_parts(answers):
    before = datetime.now(UTC)
    assert answers.answer("rater-1", 1, 0, "second", "a bit long, 🙂") is Outcome.RECORDED
    (stored,) = answers.all()
    assert (stored.rater, stored.number, stored.attempt) == ("rater-1", 1, 0)
    assert (stored.choice, stored.comment) == ("second", "a bit long, 🙂")
    assert before <= datetime.fromisoformat(stored.answered_at) <= datetime.now(UTC)
    progress = answers.progress("rater-1")
    assert (progress.answered, progress.attempt, progress.last_attempt) == (1, 0, 0)
    assert answers.progress("rater-2").answered == 0


def test_repeats_conflicts_and_gaps_change_nothing(answers):
    answers.answer("rater-1", 1, 0, "first")
    kept = answers.all()
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.REPEATED
    assert answers.answer("rater-1", 1, 0, "second") is Outcome.KEPT
    assert answers.answer("rater-1", 3, 0, "first") is Outcome.STALE
    assert answers.answer("rater-1", 2, 1, "first") is Outcome.STALE
    assert answers.all() == kept


def test_undo_keeps_what_was_said_and_a_late_repeat_does_not_bring_it_back(answers):
    answers.answer("rater-1", 1, 0, "first", "hasty")
    assert answers.undo("rater-1", 1, 0) is Outcome.UNDONE
    assert answers.all() == []
    assert answers.undone_comment("rater-1", 1) == "hasty"
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.STALE  # the post before the undo, once more
    assert answers.undo("rater-1", 1, 0) is Outcome.STALE
    assert answers.answer("rater-1", 1, 1, "second") is Outcome.RECORDED
    assert answers.undo("rater-1", 1, 0) is Outcome.STALE  # the undo of the first attempt, once more
    (stored,) = answers.all()
    assert (stored.attempt, stored.choice) == (1, "second")
    assert answers.progress("rater-1").last_attempt == 1


def test_undo_goes_back_step_by_step(answers):
    for number in (1, 2, 3):
        answers.answer("rater-1", number, 0, "first")
    assert answers.undo("rater-1", 2, 0) is Outcome.STALE
    assert [answers.undo("rater-1", number, 0) for number in (3, 2, 1)] == [Outcome.UNDONE] * 3
    assert answers.undo("rater-1", 0, 0) is Outcome.STALE


def test_a_closed_study_takes_nothing_and_an_opened_one_goes_on(answers):
    answers.answer("rater-1", 1, 0, "first")
    answers.set_closed(True)
    assert answers.closed()
    assert answers.answer("rater-1", 2, 0, "first") is Outcome.CLOSED
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.REPEATED  # it was recorded, and is told so
    assert answers.undo("rater-1", 1, 0) is Outcome.CLOSED
    answers.set_closed(False)
    assert answers.answer("rater-1", 2, 0, "first") is Outcome.RECORDED


def test_a_closing_date_closes(database, fresh_id):
    study = made_study(study_id=fresh_id, closes=datetime.now(UTC) + timedelta(seconds=0.6))
    answers = Answers(database, study, quickest=0)
    answers.start("rater-1", "native")
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.RECORDED
    time.sleep(0.7)
    assert answers.answer("rater-1", 2, 0, "first") is Outcome.CLOSED
    assert answers.closed()
    answers.dispose()


def test_the_second_half_of_a_double_click_is_not_an_answer(database, fresh_id):
    answers = Answers(database, made_study(study_id=fresh_id), quickest=0.3)
    answers.start("rater-1", "native")
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.RECORDED
    assert answers.answer("rater-1", 2, 0, "first") is Outcome.QUICK
    time.sleep(0.35)
    assert answers.answer("rater-1", 2, 0, "first") is Outcome.RECORDED
    answers.dispose()


def test_nothing_is_recorded_before_the_start_or_after_the_end(database, fresh_id):
    answers = Answers(database, made_study(study_id=fresh_id, prefixes=1), quickest=0)
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.STALE
    answers.start("rater-1", "good")
    begun = answers.progress("rater-1").started_at
    answers.start("rater-1", "native")  # changed their mind
    assert answers.progress("rater-1").started_at == begun
    assert answers.overview()[0].english == "native"
    assert answers.answer("rater-1", 1, 0, "first") is Outcome.RECORDED
    assert answers.answer("rater-1", 2, 0, "first") is Outcome.STALE
    answers.dispose()


def test_studies_in_one_database_do_not_meet(database):
    one, two = (Answers(database, made_study(study_id=secrets.token_hex(8)), quickest=0) for _ in range(2))
    one.start("rater-1", "native")
    one.answer("rater-1", 1, 0, "first")
    one.set_closed(True)
    assert two.all() == []
    assert not two.closed()
    assert two.progress("rater-1").started_at is None
    one.dispose()
    two.dispose()


def test_many_at_once_record_each_number_once(answers):
    """Sixteen tabs press for the same number at the same moment, half of them the other button."""
    with ThreadPoolExecutor(16) as pool:
        for number in range(1, 9):
            choices = ["first", "second"] * 8
            outcomes = list(pool.map(lambda choice, n=number: answers.answer("rater-1", n, 0, choice), choices))
            assert outcomes.count(Outcome.RECORDED) == 1
            won = choices[outcomes.index(Outcome.RECORDED)]
            assert answers.all()[number - 1].choice == won
            for choice, outcome in zip(choices, outcomes, strict=True):
                if outcome is not Outcome.RECORDED:
                    assert outcome is (Outcome.REPEATED if choice == won else Outcome.KEPT)


def test_answers_and_undos_at_once_leave_a_sheet_without_gaps(answers):
    def act(turn):
        progress = answers.progress("rater-1")
        if turn % 3 == 2:
            return answers.undo("rater-1", progress.answered, progress.last_attempt)
        return answers.answer("rater-1", progress.answered + 1, progress.attempt, "first")

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(act, range(90)))
    stored = [answer.number for answer in answers.all()]
    assert stored == list(range(1, len(stored) + 1))
    assert len(stored) == outcomes.count(Outcome.RECORDED) - outcomes.count(Outcome.UNDONE)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["answer", "answer", "undo", "close", "open"]),
            st.integers(1, 5),
            st.integers(0, 2),
            st.sampled_from(["first", "second"]),
        ),
        max_size=40,
    )
)
def test_any_sequence_of_posts_ends_as_a_plain_model_says(tmp_path, steps):
    """The model: a list of choices, and how often each place was undone."""
    study = made_study(study_id=secrets.token_hex(8), prefixes=4, raters=["r"])
    answers = Answers(f"sqlite:///{tmp_path / 'model.sqlite'}", study, quickest=0)
    answers.start("r", "native")
    given_choices, undos, closed = [], [0] * 7, False
    for action, number, attempt, choice in steps:
        if action == "answer":
            answers.answer("r", number, attempt, choice)
            if not closed and number == len(given_choices) + 1 <= 4 and attempt == undos[number]:
                given_choices.append(choice)
        elif action == "undo":
            answers.undo("r", number, attempt)
            if not closed and given_choices and (number, attempt) == (len(given_choices), undos[len(given_choices)]):
                given_choices.pop()
                undos[number] += 1
        else:
            closed = action == "close"
            answers.set_closed(closed)
        assert [answer.choice for answer in answers.all()] == given_choices
    answers.dispose()


def test_two_servers_on_one_sqlite_file(tmp_path):
    """Each with its own lock: the file's lock must do."""
    study = made_study(prefixes=30)
    url = f"sqlite:///{tmp_path / 'answers.sqlite'}"
    servers = [Answers(url, study, quickest=0) for _ in range(2)]
    for rater in study.sheets:
        servers[0].start(rater, "native")

    def rate(turn):
        rater = f"rater-{turn % 2 + 1}"
        return [servers[turn // 2].answer(rater, number, 0, "first") for number in range(1, 31)]

    with ThreadPoolExecutor(4) as pool:
        outcomes = [outcome for part in pool.map(rate, range(4)) for outcome in part]
    stored = [(answer.rater, answer.number) for answer in servers[0].all()]
    assert len(stored) == len(set(stored)) == outcomes.count(Outcome.RECORDED)
    assert set(outcomes) <= {Outcome.RECORDED, Outcome.REPEATED, Outcome.STALE}
    for server in servers:
        server.dispose()


def test_the_table_itself_refuses_a_second_answer(tmp_path):
    study = made_study(prefixes=3)
    answers = Answers(f"sqlite:///{tmp_path / 'answers.sqlite'}", study, quickest=0)
    answers.start("rater-1", "native")
    answers.answer("rater-1", 1, 0, "first")
    answers.dispose()
    with sqlite3.connect(tmp_path / "answers.sqlite") as raw, pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        raw.execute("INSERT INTO answers SELECT study, rater, number, 'second', comment, answered_at, 5 FROM answers")
    raw.close()


def test_sqlite_is_told_to_keep_what_it_commits(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'answers.sqlite'}")
    with engine.connect() as connection:
        read = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert read == ["wal", 2]  # 2 is FULL: the disk has it before a commit returns
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "must be a SQLAlchemy URL"),
        ("nosuch://x", "SQLAlchemy knows no database called 'nosuch'"),
        ("mysql+pymysql://x", "needs the package pymysql"),
        ("sqlite:////no/such/folder/answers.sqlite", "cannot be used: unable to open database file"),
        ("postgresql+psycopg://me:pa55word@127.0.0.1:1/x", r"me:\*\*\*@127\.0\.0\.1:1/x cannot be used"),
    ],
)
def test_a_database_that_cannot_be_used_is_said_so_without_its_password(url, message):
    if "psycopg" in url:
        pytest.importorskip("psycopg")
    with pytest.raises(ValueError, match=message) as caught:
        Answers(url, made_study())
    assert "pa55word" not in str(caught.value)


def test_no_answers_yet(tmp_path):
    made_folder(tmp_path / "study")
    with pytest.raises(ValueError, match="has no answers yet"):
        open_answers(tmp_path / "study")
