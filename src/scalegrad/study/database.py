"""The database of answers: its tables, and an engine whose commits are on disk when they return."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

# How long a write waits for another process to finish its own before it gives up, in seconds.
_BUSY_SECONDS = 20
# Requests take turns on these; each is a few files or a process of the database server.
_CONNECTIONS = 10

tables = sa.MetaData()
studies = sa.Table(
    "studies",
    tables,
    sa.Column("study", sa.String(32), primary_key=True),
    sa.Column("closed_at", sa.String(32)),
    sa.Column("design", sa.String(64), nullable=False),  # the hash of the design that the answers belong to
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
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=parsed.get_backend_name() != "sqlite",
        )
    except sa.exc.NoSuchModuleError:
        raise ValueError(f"SQLAlchemy knows no database called {parsed.drivername!r}") from None
    except ModuleNotFoundError as error:
        raise ValueError(f"a database of the kind {parsed.drivername!r} needs the package {error.name}") from None
    if engine.dialect.name == "sqlite":
        _make_durable(engine)
    return engine


# An execution option for connections that write.
WRITES = "scalegrad_writes"


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
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @sa.event.listens_for(engine, "commit")
    def commit(connection: sa.Connection) -> None:
        # The driver's own commit says nothing when SQLite has rolled back by itself; this one then fails.
        connection.exec_driver_sql("COMMIT")
