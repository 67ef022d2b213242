"""What raters said, stored the moment they said it, once: SQLite by default, any SQLAlchemy URL.

A rater answers numbers 1, 2, 3 … of their sheet in order, so the answers that stand are always 1 … k. A post names its
number and its attempt (how often that number was undone): one that comes twice, late, or from another tab fits no
longer and changes nothing. All writes of one rater follow one another, by SQLite's write lock or by a lock on the
rater's row elsewhere. Each is a transaction of its own, on disk before it is acknowledged.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from scalegrad.study.database import WRITES, answers, open_engine, raters, studies, tables, undone
from scalegrad.study.design import Choice, Study
from scalegrad.study.folder import default_database, load_study


class Outcome(Enum):
    """What became of a post."""

    RECORDED = "recorded"
    REPEATED = "repeated"  # the same answer came again: it stands, once
    KEPT = "kept"  # another answer to this number stands already, and stays
    STALE = "stale"  # the page it came from is out of date: nothing was recorded
    QUICK = "quick"  # right after the last answer, as the second half of a double click comes
    CLOSED = "closed"  # the study takes no more answers
    UNDONE = "undone"


@dataclass(frozen=True)
class Progress:
    """Where a rater stands: numbers 1 … `answered` are answered, and the next page is `attempt` of the next number."""

    answered: int
    attempt: int
    last_attempt: int
    started_at: str | None
    last_at: str | None
    closed: bool


@dataclass(frozen=True)
class Answer:
    """One answer that stands."""

    rater: str
    number: int
    attempt: int
    choice: Choice
    comment: str
    answered_at: str


@dataclass(frozen=True)
class RaterOverview:
    """How far a rater is."""

    rater: str
    english: str | None
    started_at: str | None
    answered: int
    last_at: str | None


_MINE: Any = {"study": sa.bindparam("study"), "rater": sa.bindparam("rater")}


def _progress_query() -> sa.Select[Any]:
    """All of `Progress` in one question, built once: it is asked for every page and every answer."""
    mine = sa.and_(answers.c.study == _MINE["study"], answers.c.rater == _MINE["rater"])
    last = sa.select(sa.func.max(answers.c.number)).where(mine).scalar_subquery()
    taken_back = sa.and_(
        undone.c.study == _MINE["study"],
        undone.c.rater == _MINE["rater"],
        undone.c.number == sa.func.coalesce(last, 0) + 1,
    )
    joined = raters.join(studies, studies.c.study == raters.c.study).outerjoin(
        answers, sa.and_(mine, answers.c.number == last)
    )
    return (
        sa.select(
            sa.func.coalesce(answers.c.number, 0).label("answered"),
            sa.select(sa.func.count()).select_from(undone).where(taken_back).scalar_subquery().label("attempt"),
            sa.func.coalesce(answers.c.attempt, 0).label("last_attempt"),
            raters.c.started_at,
            answers.c.answered_at.label("last_at"),
            studies.c.closed_at,
        )
        .select_from(joined)
        .where(raters.c.study == _MINE["study"], raters.c.rater == _MINE["rater"])
    )


_PROGRESS = _progress_query()
_LOCK = sa.select(raters.c.rater).filter_by(**_MINE).with_for_update()
_ANSWER = sa.select(answers).filter_by(**_MINE, number=sa.bindparam("number"))
_INSERT = sa.insert(answers)


class Answers:
    """The answers of one study in a database; safe to use from many threads and many processes."""

    def __init__(self, url: str, study: Study, quickest: float = 0.4) -> None:
        """Open the database and make the study's rows in it.

        `quickest` is the least time in seconds between an answer and the next one that is not a double click.
        """
        self.study = study
        self.quickest = quickest
        self._engine = open_engine(url)
        self._writer = self._engine.execution_options(**{WRITES: True})
        # SQLite lets one write at a time; who waits here holds no connection, and is woken at once.
        self._turn = threading.Lock() if self._engine.dialect.name == "sqlite" else nullcontext()
        self._prepare()

    def progress(self, rater: str) -> Progress:
        """Where `rater` stands."""
        with self._engine.connect() as connection:
            return self._progress(connection, rater, _now())

    def start(self, rater: str, english: str) -> None:
        """Note that `rater` has begun, and how well they know English by their own account."""
        mine = self._mine(rater)
        with self._writing(rater) as connection:
            connection.execute(sa.update(raters).filter_by(**mine).values(english=english))
            first = sa.update(raters).filter_by(**mine, started_at=None)
            connection.execute(first.values(started_at=_stamp(_now())))

    def answer(self, rater: str, number: int, attempt: int, choice: Choice, comment: str = "") -> Outcome:
        """Record an answer, unless the page it comes from is out of date; the answer is on disk when this returns."""
        with self._writing(rater) as connection:
            now = _now()
            progress = self._progress(connection, rater, now)
            if number <= progress.answered:
                there = connection.execute(_ANSWER, self._mine(rater) | {"number": number}).one()
                return Outcome.REPEATED if (there.choice, there.attempt) == (choice, attempt) else Outcome.KEPT
            if progress.closed:
                return Outcome.CLOSED
            current = (progress.answered + 1, progress.attempt)
            if progress.started_at is None or (number, attempt) != current or number > len(self.study.sheets[rater]):
                return Outcome.STALE
            if progress.last_at and 0 <= _seconds(progress.last_at, now) < self.quickest:
                return Outcome.QUICK
            row = self._mine(rater) | {"number": number, "attempt": attempt, "choice": choice, "comment": comment}
            connection.execute(_INSERT, row | {"answered_at": _stamp(now)})
            return Outcome.RECORDED

    def undo(self, rater: str, number: int, attempt: int) -> Outcome:
        """Take back `attempt` of `number` if it is the last answer; it moves to the table of undone ones."""
        with self._writing(rater) as connection:
            now = _now()
            progress = self._progress(connection, rater, now)
            if progress.closed:
                return Outcome.CLOSED
            if (number, attempt) != (progress.answered, progress.last_attempt) or number < 1:
                return Outcome.STALE
            last = self._mine(rater) | {"number": number}
            row = connection.execute(_ANSWER, last).one()
            connection.execute(sa.insert(undone).values(**row._mapping, undone_at=_stamp(now)))
            connection.execute(sa.delete(answers).filter_by(**last))
            return Outcome.UNDONE

    def undone_comment(self, rater: str, number: int) -> str:
        """The comment that came with the answer to `number` last undone, to be offered again."""
        mine = sa.select(undone.c.comment).filter_by(**self._mine(rater), number=number)
        with self._engine.connect() as connection:
            return connection.execute(mine.order_by(undone.c.attempt.desc()).limit(1)).scalar_one_or_none() or ""

    def overview(self) -> list[RaterOverview]:
        """How far every rater is, in the order of the study."""
        same = sa.and_(raters.c.study == answers.c.study, raters.c.rater == answers.c.rater)
        given, last = sa.func.count(answers.c.number), sa.func.max(answers.c.answered_at)
        me = (raters.c.rater, raters.c.english, raters.c.started_at)
        query = sa.select(*me, given, last).select_from(raters.outerjoin(answers, same))
        with self._engine.connect() as connection:
            mine = connection.execute(query.where(raters.c.study == self.study.id).group_by(*me))
            rows = {row[0]: RaterOverview(*row) for row in mine}
        return [rows[rater] for rater in self.study.sheets]

    def all(self) -> list[Answer]:
        """Every answer that stands, by rater and number."""
        mine = sa.select(answers).filter_by(study=self.study.id).order_by(answers.c.rater, answers.c.number)
        with self._engine.connect() as connection:
            rows = connection.execute(mine).all()
        return [
            Answer(row.rater, row.number, row.attempt, cast(Choice, row.choice), row.comment, row.answered_at)
            for row in rows
        ]

    def closed(self) -> bool:
        """Whether the study takes no more answers."""
        query = sa.select(studies.c.closed_at).filter_by(study=self.study.id)
        with self._engine.connect() as connection:
            return self._is_closed(connection.execute(query).scalar_one(), _now())

    def set_closed(self, closed: bool) -> None:
        """Close the study to answers, or open it again (a closing date that has passed stays passed)."""
        row = sa.update(studies).filter_by(study=self.study.id)
        with self._writing() as connection:
            connection.execute(row.values(closed_at=_stamp(_now()) if closed else None))

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _writing(self, rater: str | None = None) -> Iterator[sa.Connection]:
        """A transaction, committed when the block ends; other writes of `rater` wait until then."""
        with self._turn, self._writer.begin() as connection:
            if rater is not None:  # SQLite knows no FOR UPDATE and needs none: SQLAlchemy leaves it out there
                connection.execute(_LOCK, self._mine(rater)).one()
            yield connection

    def _mine(self, rater: str) -> dict[str, Any]:
        return {"study": self.study.id, "rater": rater}

    def _progress(self, connection: sa.Connection, rater: str, now: datetime) -> Progress:
        row = connection.execute(_PROGRESS, self._mine(rater)).one()
        answered, attempt, last_attempt, started_at, last_at, closed_at = row
        return Progress(answered, attempt, last_attempt, started_at, last_at, self._is_closed(closed_at, now))

    def _is_closed(self, closed_at: str | None, now: datetime) -> bool:
        return closed_at is not None or (self.study.closes is not None and now >= self.study.closes)

    def _prepare(self) -> None:
        """Make the tables and rows. If another server does so at this moment, the second try sees them."""
        try:
            with suppress(sa.exc.SQLAlchemyError):
                self._make_rows()
                return
            self._make_rows()
        except sa.exc.SQLAlchemyError as error:
            where = self._engine.url.render_as_string(hide_password=True)
            raise ValueError(f"the database {where} cannot be used: {getattr(error, 'orig', error)}") from None

    def _make_rows(self) -> None:
        tables.create_all(self._engine)
        mine = {"study": self.study.id}
        with self._writing() as connection:
            design = connection.execute(sa.select(studies.c.design).filter_by(**mine)).scalar_one_or_none()
            if design is None:
                connection.execute(sa.insert(studies).values(mine | {"design": self.study.fingerprint()}))
                connection.execute(sa.insert(raters), [mine | {"rater": rater} for rater in self.study.sheets])
            elif design != self.study.fingerprint():
                raise ValueError(
                    f"study.json of the study {self.study.id!r} was edited after it was first served, so the stored "
                    "answers no longer fit it: put the original file back"
                )


def open_answers(folder: str | Path, database: str | None = None) -> Answers:
    """The answers to the study in `folder`, from `database` or the folder's own file, which must be there."""
    study = load_study(folder)
    if database is None and not (Path(folder) / "answers.sqlite").exists():
        raise ValueError(f"{folder} has no answers yet: scalegrad study serve {folder} collects them")
    if database is not None or os.access(folder, os.W_OK):
        return Answers(database or default_database(folder), study)
    # SQLite writes beside a file even to read it: where it may not, a copy is read, which goes when the process ends.
    copy = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for file in Path(folder).glob("answers.sqlite*"):
        shutil.copy(file, copy)
    return Answers(default_database(copy), study)


def _now() -> datetime:
    return datetime.now(UTC)


def _seconds(since: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(since)).total_seconds()


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
