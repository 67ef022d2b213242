from __future__ import annotations

import csv
from pathlib import Path

import pytest

from scalegrad.bench import metrics
from scalegrad.bench.runner import WrongResult


def test_a_small_run_stores_every_contender(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "metrics.csv"
    metrics.main(["--scale", "0.002", "--rounds", "1", "--out", str(out)])
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert [row["implementation"] for row in rows] == [
        *("scalegrad", "loop, latest places"),
        *("scalegrad", "loop, latest places", "loop, slices"),
        *("scalegrad", "loop, sets of zips", "loop, sets of tuples"),
    ]
    assert all(row["numpy"] and row["date"] and float(row["ms"]) > 0 for row in rows)
    assert "Rep/16, /32, /128 of 19,456 ids" in capsys.readouterr().out


def test_a_wrong_figure_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metrics, "next_token", lambda guesses, golds, windows: dict.fromkeys(metrics.slices(guesses, golds), 0.5)
    )
    with pytest.raises(WrongResult, match="scalegrad: a figure errs by"):
        metrics.run(scale=0.001, rounds=1)


def test_texts_repeat_as_english_does() -> None:
    tokens = metrics.sets_of_tuples(metrics.some_texts(300))
    assert 0.25 < sum(tokens["rep_1"]) / 300 < 0.40  # human text of this length: .33
