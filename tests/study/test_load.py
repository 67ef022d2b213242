"""Many raters at once on a real server, also one that is killed: every acknowledged answer is kept, once.

A short form of `python -m benchmarks study`, which measures 200 raters; the limit on time here is loose, for the
machine is shared with other tests.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.study.load import percentile
from tests.study.raters import audit, make_folder, run_killed, run_load, server, wanted_choice

RATERS, PAUSE, SECONDS = 40, 0.8, 4.0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_is_lost_or_doubled_under_load(tmp_path, kind, request):
    database = request.getfixturevalue("postgres") if kind == "postgres" else None
    links = make_folder(tmp_path / "study", RATERS, items=20)
    with server(tmp_path / "study", database, log=tmp_path / "log") as (address, _):
        load = asyncio.run(run_load(address, links, SECONDS, PAUSE))
    found = audit(tmp_path / "study", database, load)
    assert (found.lost, found.doubled, found.gaps, found.unacknowledged) == (0, 0, 0, 0)
    assert found.stored == len(load.acknowledged) >= RATERS * 2
    assert set(load.statuses) == {200, 303}
    assert percentile(load.answer_seconds, 0.95) < 1.5
    # Every request is in the log, and no link.
    log = (tmp_path / "log").read_text()
    assert log.count('"GET /r/(hidden) HTTP/1.1" 303') == RATERS
    assert log.count('"POST /answer HTTP/1.1" 303') >= len(load.acknowledged)
    assert not any(link.rsplit("/", 1)[1] in log for link in links.values())
    # The audit itself can fail: an answer that was never stored, and one stored otherwise.
    load.acknowledged["rater-1", 99] = "first"
    load.acknowledged["rater-2", 1] = "second" if wanted_choice("rater-2", 1) == "first" else "first"
    assert audit(tmp_path / "study", database, load).lost == 2


def test_a_killed_server_has_kept_what_it_acknowledged(tmp_path):
    """kill -9 in the middle of the load; raters send again what was not answered, to the server that follows."""
    links = make_folder(tmp_path / "study", RATERS, items=40)
    load, audits = asyncio.run(run_killed(tmp_path / "study", None, links, 9, pause=0.5, kill_after=[100]))
    (left,) = audits
    assert (left.lost, left.doubled, left.gaps) == (0, 0, 0)
    assert left.stored >= 100
    assert load.retries > 0  # the kill was felt
    found = audit(tmp_path / "study", None, load)
    assert (found.lost, found.doubled, found.gaps, found.unacknowledged) == (0, 0, 0, 0)
    # The load ends only when the second server has answered every rater; what the first one stored is all there.
    assert found.stored >= left.stored
