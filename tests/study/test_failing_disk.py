"""A disk that is full or fails: an answer is acknowledged only if it is stored, and one sent again counts once."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from scalegrad.study.answers import Answers, Outcome
from tests.study.raters import audit, make_folder, run_load, server
from tests.study.studies import made_folder, made_study
from tests.study.visitors import Visitor, fields, made_app

RATERS = [f"r{i}" for i in range(16)]


@pytest.fixture
def store(request, tmp_path):
    """Answers of sixteen raters who have begun; a test may name the folder of the database."""
    folder = request.getfixturevalue(getattr(request, "param", "tmp_path"))
    answers = Answers(f"sqlite:///{folder / 'answers.sqlite'}", made_study(prefixes=40, raters=RATERS), quickest=0)
    for rater in RATERS:
        answers.start(rater, "native")
    yield answers
    answers.dispose()


def answer_all(answers, numbers):
    """Every rater answers `numbers`, all raters at once. Gives what was acknowledged, and how often a write failed."""
    acknowledged, failures = set(), []

    def rate(rater):
        # Long comments of one rater in four fill the database; the others squeeze in beside them.
        comment = "x" * 6000 if int(rater[1:]) % 4 == 2 else ""
        for number in numbers:
            outcome = None
            for _ in range(3):  # what is refused is sent again, what is acknowledged is not
                try:
                    outcome = answers.answer(rater, number, 0, "first", comment)
                    break
                except (SQLAlchemyError, MemoryError) as error:
                    failures.append(error)
            if outcome in (Outcome.RECORDED, Outcome.REPEATED):
                acknowledged.add((rater, number))

    with ThreadPoolExecutor(len(RATERS)) as pool:
        list(pool.map(rate, RATERS))
    print(f"{len(acknowledged)} acknowledged, {len(stored(answers))} stored, {len(failures)} refused")
    return acknowledged, failures


def stored(answers):
    rows = [(answer.rater, answer.number) for answer in answers.all()]
    assert len(rows) == len(set(rows))
    return set(rows)


def limit_pages(answers, extra):
    """Let the database grow by `extra` pages at most; SQLite then answers SQLITE_FULL."""
    engine = answers._engine
    with engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    engine.dispose()
    limit = sa.event.listens_for(engine, "connect")
    limit(lambda connection, _: connection.execute(f"PRAGMA max_page_count={pages + extra}"))


def test_a_full_database_acknowledges_no_answer_that_is_not_stored(store):
    limit_pages(store, 12)
    acknowledged, failures = answer_all(store, range(1, 11))
    assert acknowledged == stored(store), f"lost: {len(acknowledged - stored(store))} of {len(acknowledged)}"
    assert acknowledged
    assert failures
    assert all("full" in str(error) for error in failures)


def test_when_there_is_room_again_everything_is_stored_once(store):
    limit_pages(store, 12)
    first, _ = answer_all(store, range(1, 11))
    store._engine.dispose()
    limit_pages(store, 10_000)
    acknowledged, failures = answer_all(store, range(1, 11))
    assert not failures
    assert first < acknowledged == stored(store) == {(rater, number) for rater in RATERS for number in range(1, 11)}


def test_a_rater_on_a_full_database_gets_an_error_and_can_send_the_answer_again(tmp_path):
    _, links = made_folder(tmp_path / "study")
    app = made_app(tmp_path / "study")
    answers = app.state.site.answers
    anna = Visitor(app)
    anna.enter(links["rater-1"])
    post = fields(anna.page(), "/answer") | {"choice": "first", "comment": "long " * 400}
    limit_pages(answers, 0)
    answers.start("rater-2", "native")
    with suppress(SQLAlchemyError):  # another rater's comments take what room there is
        for number in range(1, 7):
            answers.answer("rater-2", number, 0, "first", "x" * 1500)
    others = answers.all()
    refusal = anna.client.post("/answer", data=post)
    assert refusal.status_code == 503
    assert "again" in refusal.text
    assert answers.all() == others
    assert anna.number() == 1
    answers._engine.dispose()
    limit_pages(answers, 100)
    for _ in range(2):
        assert anna.client.post("/answer", data=post).headers["location"] == "/rate"
    assert len(answers.all()) == len(others) + 1


def test_a_commit_after_sqlite_gave_up_its_transaction_is_an_error(store):
    """SQLite may roll back by itself; Python's driver then takes the commit of nothing for a success."""

    with pytest.raises(SQLAlchemyError, match="no transaction is active"), store._writing() as connection:
        connection.exec_driver_sql("ROLLBACK")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this machine does not let the test mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("store", ["small_disk"], indirect=True)
def test_a_full_disk_acknowledges_no_answer_that_is_not_stored(store, small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 600_000)
    acknowledged, failures = answer_all(store, range(1, 16))
    assert failures
    assert acknowledged
    assert acknowledged == stored(store)
    # With room again, what was refused is sent again and counts once.
    ballast.unlink()
    with store._engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    again, _ = answer_all(store, range(1, 6))
    assert again >= {(rater, number) for rater, number in acknowledged if number < 6}
    assert again <= stored(store)


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every 40th read of the answers' files fails once the file named by FAILING exists. */
static int fails(int fd) {
    static atomic_uint reads;
    char link[64], path[4096];
    const char *failing = getenv("FAILING");
    if (!failing || access(failing, F_OK)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (!strstr(path, "answers.sqlite")) return 0;
    unsigned turn = atomic_fetch_add(&reads, 1);
    if (turn % 40 != 7) return 0;
    errno = turn % 80 == 7 ? ESTALE : EIO;
    return 1;
}

#define READER(name, offset_type) \
    ssize_t name(int fd, void *buffer, size_t size, offset_type offset) { \
        static ssize_t (*real)(int, void *, size_t, offset_type); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        return fails(fd) ? -1 : real(fd, buffer, size, offset); \
    }
READER(pread, off_t)
READER(pread64, off64_t)
"""


def test_reads_that_fail_acknowledge_no_answer_that_is_not_stored(tmp_path, monkeypatch):
    """A real server whose reads of the database fail now and then; raters send again what was refused."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is needed to make reads fail")
    (tmp_path / "shim.c").write_text(SHIM)
    compiler = ["gcc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "shim.so", tmp_path / "shim.c", "-ldl"]
    subprocess.run(compiler, check=True, capture_output=True)
    links = make_folder(tmp_path / "study", raters=30, items=20)
    failing: Path = tmp_path / "failing"
    monkeypatch.setenv("FAILING", str(failing))
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))
    with server(tmp_path / "study", log=tmp_path / "log") as (address, _):
        failing.touch()
        load = asyncio.run(run_load(address, links, seconds=5, pause=0.5))
        failing.unlink()
    assert load.statuses.get(503, 0) > 5, load.statuses
    assert set(load.statuses) == {200, 303, 503}
    checked = audit(tmp_path / "study", None, load)
    print(f"{len(load.acknowledged)} acknowledged, {checked}, {load.statuses}")
    assert (checked.lost, checked.doubled, checked.gaps) == (0, 0, 0)
    assert len(load.acknowledged) > 100
    assert "disk I/O error" in (tmp_path / "log").read_text()
