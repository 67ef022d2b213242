"""The record of results: rows that are appended, read back, and known by what they are figures of."""

import json

import pytest

from scalegrad.runs import Row, Run, read_rows, rows_of, write_rows
from scalegrad.runs.rows import FILE


def test_rows_come_back_as_they_were_written(tmp_path):
    rows = [Row("rep_1", 0.5, objective="sg", strength=0.2, decoding="greedy", new_tokens=100, low=0.4, high=0.6, n=12)]
    rows += [Row("ppl", None, objective="sg", strength="linear:1.0:0.2:9", window=1024)]
    write_rows(tmp_path / FILE, rows)
    assert read_rows(tmp_path / FILE) == rows
    assert "seed" not in json.loads((tmp_path / FILE).read_text().splitlines()[0])


def test_a_figure_measured_again_replaces_the_one_before(tmp_path):
    write_rows(tmp_path / FILE, rows_of({"ppl": 14.0, "rep_1": 0.5}, seed=0, n=10))
    write_rows(tmp_path / FILE, rows_of({"ppl": {"value": 13.0, "n": 20}}, seed=0))
    assert {row.metric: (row.value, row.n) for row in read_rows(tmp_path / FILE)} == {
        "ppl": (13.0, 20),
        "rep_1": (0.5, 10),
    }


def test_a_line_that_a_kill_tore_is_left_out(tmp_path):
    write_rows(tmp_path / FILE, rows_of({"ppl": 14.0, "rep_1": 0.5}))
    whole = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(whole[:-5])
    assert [row.metric for row in read_rows(tmp_path / FILE)] == ["ppl"]


def test_a_field_that_no_row_has_is_refused(tmp_path):
    (tmp_path / FILE).write_text('{"metric": "ppl", "value": 1.0, "labl": "SG"}\n')
    with pytest.raises(ValueError, match=r"line 1.*labl"):
        read_rows(tmp_path / FILE)


def test_a_run_knows_what_was_measured_under_which_settings(tmp_path):
    run = Run.create(tmp_path / "sg-0.2-seed-0", {"seed": 0})
    settings = {"part": "texts", "prefixes": 3, "strategies": ("greedy",)}
    assert run.evaluation(settings) is None
    run.add(rows_of({"rep_1": 0.5}, seed=0), settings, notes=["few prefixes"])
    again = Run.open(run.path)
    assert again.evaluation(settings)["notes"] == ["few prefixes"]
    assert again.evaluation({**settings, "prefixes": 4}) is None
    assert [(row.run, row.value) for row in again.rows()] == [("sg-0.2-seed-0", 0.5)]
    assert Run.create(run.path, {"seed": 1}, overwrite=True).rows() == []
