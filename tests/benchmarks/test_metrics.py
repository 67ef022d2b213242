from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import metrics
from benchmarks.record import read
from benchmarks.runner import Skipped


def test_a_small_run_stores_every_contender(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "metrics.csv"
    metrics.command(metrics.Options(scale=0.002, rounds=2, out=out, json=True))
    rows = read(out)
    assert [row["implementation"] for row in rows] == [
        *("scalegrad", "loop, latest places"),
        *("scalegrad", "loop, latest places", "loop, slices"),
        *("scalegrad", "loop, sets of zips", "loop, sets of tuples"),
    ]
    assert all(row["numpy"] and row["date"] and float(row["ms"]) > 0 and not row["skipped"] for row in rows)
    assert rows[0]["case"] == "Rep/16, /32, /128 of 19,456 ids"
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 8


def test_a_wrong_figure_gets_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    half = dict.fromkeys(
        (f"{kind}_{window}" for window in metrics.WINDOWS for kind in ("rep_window", "wrong_rep_window")), 0.5
    )
    monkeypatch.setattr(metrics, "next_token", lambda *_: half)
    (_, rows), *_ = metrics.measure(scale=0.001, rounds=2)
    assert isinstance(rows[0], Skipped)
    assert rows[0].reason.startswith("scalegrad: a figure errs by")
    assert not isinstance(rows[1], Skipped)


def test_texts_and_ids_repeat_as_english_does() -> None:
    tokens = metrics.sets_of_tuples(metrics.some_texts(300))
    assert 0.25 < sum(tokens["rep_1"]) / 300 < 0.40  # human text of this length: .33
    _, targets = metrics.some_ids(50 * 1024)
    assert 0.4 < metrics.latest_places(targets, targets)["rep_window_128"] < 0.6  # human text: .48
