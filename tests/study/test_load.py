"""Many raters at once on a real server, also one that is killed: every acknowledged answer is kept, once.

A short form of `python -m scalegrad.bench.study`, which measures 200 raters; the limit on time here is loose, for the
machine is shared with other tests.
"""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from scalegrad.bench.study import Load, audit, make_folder, percentile, run_load, server, wanted_choice

RATERS, PAUSE, SECONDS = 40, 0.8, 4.0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_is_lost_or_doubled_under_load(tmp_path, kind, request):
    database = request.getfixturevalue("postgres") if kind == "postgres" else None
    links = make_folder(tmp_path / "study", RATERS, items=20)
    with server(tmp_path / "study", database) as (address, _):
        load = asyncio.run(run_load(address, links, SECONDS, PAUSE))
    found = audit(tmp_path / "study", database, load)
    assert (found.lost, found.doubled, found.gaps, found.unacknowledged) == (0, 0, 0, 0)
    assert found.stored == len(load.acknowledged) >= RATERS * 2
    assert set(load.statuses) == {200, 303}
    assert percentile(load.answer_seconds, 0.95) < 1.5
    # The audit itself can fail: an answer that was never stored, and one stored otherwise.
    load.acknowledged["rater-1", 99] = "first"
    load.acknowledged["rater-2", 1] = "second" if wanted_choice("rater-2", 1) == "first" else "first"
    assert audit(tmp_path / "study", database, load).lost == 2


def test_a_killed_server_has_kept_what_it_acknowledged(tmp_path):
    """kill -9 in the middle of the load; raters send again what was not answered, to the server that follows."""
    links = make_folder(tmp_path / "study", RATERS, items=40)

    async def play() -> tuple[Load, set[tuple[str, int]], int]:
        with server(tmp_path / "study") as (address, process):
            port = int(address.rsplit(":", 1)[1])
            load = Load()
            rating = asyncio.create_task(run_load(address, links, 9, 0.4, load))
            await asyncio.sleep(3.5)
            process.send_signal(signal.SIGKILL)
            process.wait()
            acknowledged = set(load.acknowledged)
        kept = await asyncio.to_thread(audit, tmp_path / "study", None, load)
        with server(tmp_path / "study", port=port):
            await rating
        return load, acknowledged, kept.lost

    start = time.monotonic()
    load, before, lost_at_once = asyncio.run(play())
    assert lost_at_once == 0
    assert len(before) > 20
    assert load.retries > 0  # the kill was felt
    found = audit(tmp_path / "study", None, load)
    assert (found.lost, found.doubled, found.gaps, found.unacknowledged) == (0, 0, 0, 0)
    assert len(load.acknowledged) > len(before)  # and rating went on
    assert time.monotonic() - start < 60
