"""What raters said, stored the moment they said it, once: SQLite by default, any SQLAlchemy URL.

A rater answers numbers 1, 2, 3 … of their sheet in order, so the answers that stand are always 1 … k. A post names its
number and its attempt (how often that number was undone): one that comes twice, late, or from another tab fits no
longer and changes nothing. All writes of one rater follow one another, by SQLite's write lock or by a lock on the
rater's row elsewhere, and each is committed before it is acknowledged.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, cast

import sqlalchemy as sa

from scalegrad.study.design import Choice, Study

# How long a write waits for another process to finish its own before it gives up, in seconds.
_BUSY_SECONDS = 20

tables = sa.MetaData()
_studies = sa.Table(
    "studies",
    tables,
    sa.Column("study", sa.String(32), primary_key=True),
    sa.Column("closed_at", sa.String(32)),
)
_raters = sa.Table(
    "raters",
    tables,
    sa.Column("study", sa.String(32), primary_key=True),
    sa.Column("rater", sa.String(64), primary_key=True),
    sa.Column("english", sa.String(32)),
    sa.Column("started_at", sa.String(32)),
)
def _answer_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("study", sa.String(32), primary_key=True),
        sa.Column("rater", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("choice", sa.String(8), nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("answered_at", sa.String(32), nullable=False),
    ]


_answers = sa.Table("answers", tables, *_answer_columns(), sa.Column("attempt", sa.Integer, nullable=False))
# Answers taken back: kept, for nothing a rater said is thrown away, and counted, so that attempts have numbers.
_undone = sa.Table(
    "undone",
    tables,
    *_answer_columns(),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("undone_at", sa.String(32), nullable=False),
)


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
    english: str | None
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


class Answers:
    """The answers of one study in a database; safe to use from many threads and many processes."""

    def __init__(self, url: str, study: Study, quickest: float = 0.4) -> None:
        """Open the database and make the study's rows in it.

        `quickest` is the least time in seconds between an answer and the next one that is not a double click.
        """
        self.study = study
        self.quickest = quickest
        self._engine = _engine(url)
        self._one_writer = threading.Lock() if self._engine.dialect.name == "sqlite" else None
        self._prepare()

    def progress(self, rater: str, now: datetime | None = None) -> Progress:
        """Where `rater` stands."""
        with self._engine.connect() as connection:
            return self._progress(connection, rater, now or _now())

    def start(self, rater: str, english: str) -> None:
        """Note that `rater` has begun, and how well they know English by their own account."""
        mine = self._of(_raters, rater)
        with self._write(rater) as connection:
            row = connection.execute(sa.select(_raters.c.started_at).where(mine)).one()
            connection.execute(
                sa.update(_raters).where(mine).values(english=english, started_at=row.started_at or _stamp(_now()))
            )

    def answer(
        self,
        rater: str,
        number: int,
        attempt: int,
        choice: Choice,
        comment: str = "",
        now: datetime | None = None,
    ) -> Outcome:
        """Record an answer, unless the page it comes from is out of date; the answer is on disk when this returns."""
        with self._write(rater) as connection:
            now = now or _now()
            progress = self._progress(connection, rater, now)
            if number <= progress.answered:
                there = connection.execute(
                    sa.select(_answers.c.choice, _answers.c.attempt).where(
                        self._of(_answers, rater), _answers.c.number == number
                    )
                ).one()
                return Outcome.REPEATED if (there.choice, there.attempt) == (choice, attempt) else Outcome.KEPT
            if progress.closed:
                return Outcome.CLOSED
            current = (progress.answered + 1, progress.attempt)
            if progress.started_at is None or (number, attempt) != current or number > len(self.study.sheets[rater]):
                return Outcome.STALE
            if progress.last_at and 0 <= _seconds(progress.last_at, now) < self.quickest:
                return Outcome.QUICK
            values = {"study": self.study.id, "rater": rater, "number": number, "attempt": attempt}
            values |= {"choice": choice, "comment": comment, "answered_at": _stamp(now)}
            connection.execute(sa.insert(_answers).values(values))
            return Outcome.RECORDED

    def undo(self, rater: str, number: int, attempt: int, now: datetime | None = None) -> Outcome:
        """Take back `attempt` of `number` if it is the last answer; it moves to the table of undone ones."""
        with self._write(rater) as connection:
            now = now or _now()
            progress = self._progress(connection, rater, now)
            if progress.closed:
                return Outcome.CLOSED
            if (number, attempt) != (progress.answered, progress.last_attempt) or number < 1:
                return Outcome.STALE
            last = self._of(_answers, rater) & (_answers.c.number == number)
            row = connection.execute(sa.select(_answers).where(last)).one()
            connection.execute(sa.insert(_undone).values(**row._mapping, undone_at=_stamp(now)))
            connection.execute(sa.delete(_answers).where(last))
            return Outcome.UNDONE

    def undone_comment(self, rater: str, number: int) -> str:
        """The comment that came with the answer to `number` last undone, to be offered again."""
        mine = sa.and_(self._of(_undone, rater), _undone.c.number == number)
        last = sa.select(_undone.c.comment).where(mine).order_by(_undone.c.attempt.desc()).limit(1)
        with self._engine.connect() as connection:
            return connection.execute(last).scalar_one_or_none() or ""

    def overview(self) -> list[RaterOverview]:
        """How far every rater is, in the order of the study."""
        joined = _raters.outerjoin(
            _answers, sa.and_(_raters.c.study == _answers.c.study, _raters.c.rater == _answers.c.rater)
        )
        given, last = sa.func.count(_answers.c.number), sa.func.max(_answers.c.answered_at)
        me = (_raters.c.rater, _raters.c.english, _raters.c.started_at)
        query = sa.select(*me, given, last).select_from(joined).where(_raters.c.study == self.study.id).group_by(*me)
        with self._engine.connect() as connection:
            rows = {row[0]: RaterOverview(*row) for row in connection.execute(query)}
        return [rows[rater] for rater in self.study.sheets]

    def all(self) -> list[Answer]:
        """Every answer that stands, by rater and number."""
        mine = sa.select(_answers).where(_answers.c.study == self.study.id).order_by(_answers.c.rater, _answers.c.number)
        with self._engine.connect() as connection:
            rows = connection.execute(mine).all()
        return [
            Answer(row.rater, row.number, row.attempt, cast(Choice, row.choice), row.comment, row.answered_at)
            for row in rows
        ]

    def closed(self) -> bool:
        """Whether the study takes no more answers."""
        with self._engine.connect() as connection:
            return self._closed(connection, _now())

    def set_closed(self, closed: bool) -> None:
        """Close the study to answers, or open it again (a closing date that has passed stays passed)."""
        with self._write(None) as connection:
            row = _studies.c.study == self.study.id
            connection.execute(sa.update(_studies).where(row).values(closed_at=_stamp(_now()) if closed else None))

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _progress(self, connection: sa.Connection, rater: str, now: datetime) -> Progress:
        me = connection.execute(
            sa.select(_raters.c.english, _raters.c.started_at).where(self._of(_raters, rater))
        ).one()
        last = connection.execute(
            sa.select(_answers.c.number, _answers.c.attempt, _answers.c.answered_at)
            .where(self._of(_answers, rater))
            .order_by(_answers.c.number.desc())
            .limit(1)
        ).one_or_none()
        answered = last.number if last else 0
        attempt = connection.execute(
            sa.select(sa.func.count()).where(self._of(_undone, rater), _undone.c.number == answered + 1)
        ).scalar_one()
        return Progress(
            answered=answered,
            attempt=attempt,
            last_attempt=last.attempt if last else 0,
            english=me.english,
            started_at=me.started_at,
            last_at=last.answered_at if last else None,
            closed=self._closed(connection, now),
        )

    def _closed(self, connection: sa.Connection, now: datetime) -> bool:
        if self.study.closes is not None and now >= self.study.closes:
            return True
        row = _studies.c.study == self.study.id
        return connection.execute(sa.select(_studies.c.closed_at).where(row)).scalar_one() is not None

    def _of(self, table: sa.Table, rater: str) -> sa.ColumnElement[bool]:
        return sa.and_(table.c.study == self.study.id, table.c.rater == rater)

    @contextmanager
    def _write(self, rater: str | None) -> Iterator[sa.Connection]:
        """A transaction in which nobody else writes for `rater`."""
        if self._one_writer is not None:
            # Threads queue here rather than in SQLite, which makes waiters sleep and lets them overtake each other.
            with self._one_writer, self._engine.execution_options(**_IMMEDIATE).begin() as connection:
                yield connection
            return
        with self._engine.begin() as connection:
            if rater is not None:
                connection.execute(sa.select(_raters.c.rater).where(self._of(_raters, rater)).with_for_update()).one()
            yield connection

    def _prepare(self) -> None:
        """Make the tables and the rows of the study and its raters, unless another server does so at this moment."""
        try:
            self._make_rows()
        except sa.exc.SQLAlchemyError:
            try:
                self._make_rows()  # if the other one was quicker, all is there now
            except sa.exc.SQLAlchemyError as error:
                where = self._engine.url.render_as_string(hide_password=True)
                raise ValueError(f"the database {where} cannot be used: {getattr(error, 'orig', error)}") from None

    def _make_rows(self) -> None:
        tables.create_all(self._engine)
        mine = {"study": self.study.id}
        with self._write(None) as connection:
            study = connection.execute(sa.select(_studies.c.study).filter_by(**mine)).one_or_none()
            known = set(connection.execute(sa.select(_raters.c.rater).filter_by(**mine)).scalars())
            if study is None:
                connection.execute(sa.insert(_studies).values(mine))
            new = [mine | {"rater": rater} for rater in self.study.sheets if rater not in known]
            if new:
                connection.execute(sa.insert(_raters), new)


_IMMEDIATE = {"scalegrad_immediate": True}


def _engine(url: str) -> sa.Engine:
    try:
        parsed = sa.engine.make_url(url)
    except sa.exc.ArgumentError:
        raise ValueError("the database must be a SQLAlchemy URL such as sqlite:///answers.sqlite") from None
    try:
        # hide_parameters: an error in a log must not carry what a rater wrote.
        engine = sa.create_engine(parsed, hide_parameters=True, pool_size=10, max_overflow=30, pool_pre_ping=True)
    except sa.exc.NoSuchModuleError:
        raise ValueError(f"SQLAlchemy knows no database called {parsed.drivername!r}") from None
    except ModuleNotFoundError as error:
        raise ValueError(f"a database of the kind {parsed.drivername!r} needs the package {error.name}") from None
    if engine.dialect.name == "sqlite":
        _make_durable(engine)
    return engine


def _make_durable(engine: sa.Engine) -> None:
    """SQLite: readers never wait for the writer, a commit is on disk, and writers wait their turn."""

    @sa.event.listens_for(engine, "connect")
    def connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver must not open transactions of its own
        for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY_SECONDS * 1000}"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A write that began as a read could not wait for another writer: SQLite would refuse it.
        immediate = connection.get_execution_options().get("scalegrad_immediate")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _now() -> datetime:
    return datetime.now(UTC)


def _seconds(since: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(since)).total_seconds()


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
