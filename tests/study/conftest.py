"""Databases to store answers in."""

from __future__ import annotations

import secrets

import pytest

from tests.study.postgres import postgres_programs, temporary_postgres


@pytest.fixture(scope="session")
def postgres():
    """The URL of a real PostgreSQL for the length of the session."""
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    pytest.importorskip("psycopg")
    with temporary_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """A URL for each kind of database; use it with `study_id` of `fresh_id`."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'answers.sqlite'}"
    return request.getfixturevalue("postgres")


@pytest.fixture
def fresh_id():
    """The id of a study that no other test has put into the same database."""
    return secrets.token_hex(8)
