"""The database of answers: its tables, an engine that keeps what it has acknowledged, and how writes are committed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import sqlalchemy as sa

# How long a write waits for another process to finish its own before it gives up, in seconds.
_BUSY_SECONDS = 20
# As many connections as there are threads that serve requests.
_CONNECTIONS = 40

tables = sa.MetaData()
studies = sa.Table(
    "studies",
    tables,
    sa.Column("study", sa.String(32), primary_key=True),
    sa.Column("closed_at", sa.String(32)),
)
raters = sa.Table(
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


answers = sa.Table("answers", tables, *_answer_columns(), sa.Column("attempt", sa.Integer, nullable=False))
# Answers taken back: kept, for nothing a rater said is thrown away, and counted, so that attempts have numbers.
undone = sa.Table(
    "undone",
    tables,
    *_answer_columns(),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("undone_at", sa.String(32), nullable=False),
)


def open_engine(url: str) -> sa.Engine:
    """An engine for a SQLAlchemy URL, or a `ValueError` that says what is wrong with it."""
    try:
        parsed = sa.engine.make_url(url)
    except sa.exc.ArgumentError:
        raise ValueError("the database must be a SQLAlchemy URL such as sqlite:///answers.sqlite") from None
    try:
        # hide_parameters: an error in a log must not carry what a rater wrote.
        engine = sa.create_engine(
            parsed,
            hide_parameters=True,
            pool_size=_CONNECTIONS // 4,
            max_overflow=_CONNECTIONS - _CONNECTIONS // 4,
            pool_pre_ping=parsed.get_backend_name() != "sqlite",
        )
    except sa.exc.NoSuchModuleError:
        raise ValueError(f"SQLAlchemy knows no database called {parsed.drivername!r}") from None
    except ModuleNotFoundError as error:
        raise ValueError(f"a database of the kind {parsed.drivername!r} needs the package {error.name}") from None
    if engine.dialect.name == "sqlite":
        _make_durable(engine)
    return engine


_IMMEDIATE = "scalegrad_immediate"


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
        immediate = connection.get_execution_options().get(_IMMEDIATE)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


Result = TypeVar("Result")
Job = Callable[[sa.Connection], Result]


class OwnCommits:
    """Writes where the database itself lets many write at once: a transaction for each."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def run(self, job: Job[Result], lock: sa.Select[Any] | None = None) -> Result:
        """Do `job` in a transaction of its own that first locks the rows of `lock`; committed when this returns."""
        with self._engine.begin() as connection:
            if lock is not None:
                connection.execute(lock.with_for_update()).one()
            return job(connection)


class SharedCommits:
    """Writes where only one may write at a time (SQLite): those that wait meanwhile share the next transaction.

    A commit waits for the disk, some milliseconds; one by one, a hundred answers a second would be all there is. So
    whoever gets to write does the jobs of everybody waiting, each in a savepoint, and commits them together.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine.execution_options(**{_IMMEDIATE: True})
        self._writing = threading.Lock()
        self._noting = threading.Lock()
        self._waiting: list[tuple[Job[Any], Future[Any]]] = []

    def run(self, job: Job[Result], lock: sa.Select[Any] | None = None) -> Result:
        """Do `job` while nobody else writes, so that no `lock` is needed; committed when this returns."""
        done: Future[Result] = Future()
        with self._noting:
            self._waiting.append((job, done))
        with self._writing:
            if not done.done():
                self._commit_waiting()
        return done.result()

    def _commit_waiting(self) -> None:
        with self._noting:
            batch, self._waiting = self._waiting, []
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            with self._engine.begin() as connection:
                for job, _ in batch:
                    try:
                        with connection.begin_nested():
                            outcomes.append((job(connection), None))
                    except Exception as error:
                        outcomes.append((None, error))
        except BaseException as error:
            outcomes = [(None, error)] * len(batch)
        for (_, done), (result, mistake) in zip(batch, outcomes, strict=True):
            if mistake is None:
                done.set_result(result)
            else:
                done.set_exception(mistake)
