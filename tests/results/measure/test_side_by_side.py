"""Rows, intervals, paired differences, and the notes that keep a reader from comparing what does not compare."""

import json
import math
import random

import numpy as np
import pytest

from scalegrad.metrics import diversity, repetition
from scalegrad.results.measure import build_report, grouped_values, measure, measure_files, report_as_dict
from scalegrad.results.measure.human import embedded_blocks

BLOCKS = list(embedded_blocks(60, wikitext_form=False))[:300]


def looping(texts, share, seed=0):
    draw = random.Random(seed)
    return [" ".join((text.split()[:10] * 6)[:60]) if draw.random() < share else text for text in texts]


@pytest.fixture(scope="module")
def report():
    systems = [measure(looping(BLOCKS, 0.5), "bad"), measure(looping(BLOCKS, 0.1, seed=1), "better")]
    return build_report(systems)


def test_rows_are_the_metrics_of_the_texts(report):
    row = report.rows[0]
    expected = repetition(looping(BLOCKS, 0.5))
    for name in ("rep_1", "rep_2", "rep_3", "rep_4"):
        assert row.figures[name].mean == pytest.approx(expected[name], abs=1e-12)
    assert row.uniq_w == expected["uniq_w"]
    assert row.figures["diversity"].mean == pytest.approx(diversity(looping(BLOCKS, 0.5)), abs=1e-12)
    assert (row.texts, row.scored, row.median_words) == (300, 300, 60)


def test_intervals_have_the_width_of_the_standard_error(report):
    values = measure(looping(BLOCKS, 0.5), "bad").values.groups("rep_1")
    figure = report.rows[0].figures["rep_1"]
    expected = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    assert figure.low < figure.mean < figure.high
    assert (figure.high - figure.low) / 2 == pytest.approx(expected, rel=0.1)


def test_difference_is_that_of_the_rows_and_pairs_texts(report):
    (pair,) = report.differences
    assert (pair.first, pair.second) == ("better", "bad")
    for name in ("rep_1", "stuck", "diversity", "compression"):
        rows = report.rows[1].figures[name].mean - report.rows[0].figures[name].mean
        assert pair.figures[name].mean == pytest.approx(rows, abs=1e-12)
    assert pair.figures["stuck"].high < 0
    assert pair.p_values["stuck"] < 0.001


def test_systems_that_are_alike_do_not_differ():
    a, b = looping(BLOCKS, 0.2), looping(BLOCKS, 0.2, seed=5)
    (pair,) = build_report([measure(a, "a"), measure(b, "b")]).differences
    assert pair.figures["stuck"].low <= 0 <= pair.figures["stuck"].high
    assert pair.p_values["stuck"] > 0.05


def test_human_row_has_the_length_and_uniq_w_as_many_texts(report):
    human = report.rows[-1]
    assert (human.human, human.name, human.median_words) == (True, "human (60 words)", 60)
    blocks = list(embedded_blocks(60, wikitext_form=False))
    assert human.texts == 500  # see conftest
    spread = [blocks[number * len(blocks) // 300] for number in range(300)]
    assert (human.uniq_w, human.uniq_w_texts) == (repetition(spread)["uniq_w"], 300)
    assert human.figures["rep_1"].mean == pytest.approx(repetition(blocks)["rep_1"], abs=0.01)
    assert report.human_row(report.rows[0]) is human


def test_other_lengths_get_a_human_row_each_and_a_note():
    short, long = measure(list(embedded_blocks(20, False))[:50], "short"), measure(BLOCKS[:50], "long")
    report = build_report([short, long])
    assert [row.name for row in report.rows if row.human] == ["human (20 words)", "human (60 words)"]
    assert report.human_row(report.rows[0]).name == "human (20 words)"
    assert report.notes[0] == (
        "The systems differ in length (median words: short 20, long 60), and repetition grows with length: "
        "--words N compares the first N words of texts that have as many."
    )


def test_nothing_is_the_beginning_of_texts_without_a_word():
    notes = build_report([measure(["", " "], "none"), measure(BLOCKS[:2], "some")]).notes
    assert notes[0].endswith("(median words: none 0, some 60), and repetition grows with length.")


def test_wikitext_texts_are_held_against_wikitext():
    report = build_report([measure(list(embedded_blocks(50, True))[:80], "x")])
    assert report.rows[-1].name == "human (50 words, WikiText form)"


def test_unequal_numbers_of_texts_do_not_pair():
    report = build_report([measure(BLOCKS, "a"), measure(BLOCKS[:-1], "b")])
    assert report.differences == []
    assert "b and a have 299 and 300 texts: they cannot be compared text by text." in report.notes
    assert any("uniq-w grows with the number of texts" in note for note in report.notes)


def test_more_texts_than_the_corpus_has_leave_uniq_w_out(monkeypatch):
    monkeypatch.setattr("scalegrad.results.measure.side_by_side.embedded_blocks", lambda words, form: iter(BLOCKS[:9]))
    row = build_report([measure(BLOCKS[:10], "x")]).rows[-1]
    assert (row.uniq_w, row.texts) == (None, 9)


def test_texts_longer_than_the_corpus_have_no_human_row():
    report = build_report([measure(["word " * 300_000], "x", worst=0)])
    assert [row.human for row in report.rows] == [False]
    assert "too long for a human reference" in report.notes[0]


def test_grouping_of_long_streams_keeps_means_and_says_so(monkeypatch):
    whole = build_report([measure(looping(BLOCKS, 0.5), "x")]).rows[0]
    monkeypatch.setattr(grouped_values, "GROUPS", 128)
    report = build_report([measure(looping(BLOCKS, 0.5), "x")])
    for name in ("rep_1", "stuck", "loop", "compression"):
        assert report.rows[0].figures[name].mean == pytest.approx(whole.figures[name].mean, abs=1e-12)
    width = report.rows[0].figures["rep_1"].high - report.rows[0].figures["rep_1"].low
    assert width == pytest.approx(whole.figures["rep_1"].high - whole.figures["rep_1"].low, rel=0.35)
    assert "x is long: its intervals resample groups of 4 neighbouring texts." in report.notes


def test_dictionary_is_json_without_nan(report):
    plain = json.loads(json.dumps(report_as_dict(report), allow_nan=False))
    never_stuck = report_as_dict(build_report([measure(BLOCKS, "x")], human=[measure(BLOCKS[:9], "human")]))
    assert never_stuck["rows"][0]["figures"]["loop"] == {"mean": None, "low": None, "high": None}
    assert plain["rows"][0]["figures"]["rep_1"]["mean"] == report.rows[0].figures["rep_1"].mean
    assert plain["differences"][0]["figures"]["rep_1"]["p_value"] < 0.001
    assert plain["worst"]["bad"][0]["loop_tokens"] == 114


def test_own_human_texts_are_cut_to_the_length(tmp_path):
    path, own = tmp_path / "x.txt", tmp_path / "own.txt"
    path.write_text("".join(text + "\n" for text in BLOCKS[:30]))
    own.write_text("".join(text + "\n" for text in list(embedded_blocks(150, False))[:40]))
    rows = measure_files([str(path)], human=str(own)).rows
    assert [(row.name, row.human, row.texts, row.median_words) for row in rows] == [
        ("x.txt", False, 30, 60),
        ("human (own.txt)", True, 40, 60),
    ]


def test_own_human_texts_are_cut_after_the_clean_up(tmp_path):
    path, own = tmp_path / "x.txt", tmp_path / "own.txt"
    path.write_text("one two three four five six\n" * 3)
    own.write_text("It 's late  , they say . So we go home , all of us .\n" * 3)
    human = measure_files([str(path)], human=str(own)).rows[1]
    assert (human.median_words, human.uniq_w) == (6, 6)  # It's late , they say. So


def test_limit_and_names(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text("".join(text + "\n" for text in BLOCKS[:20]))
    sources = [str(tmp_path / folder / "x.txt") for folder in ("a", "b")]
    rows = measure_files(sources, limit=5).rows
    assert [(row.name, row.texts) for row in rows if not row.human] == [(sources[0], 5), (sources[1], 5)]
    for options, sentence in [
        ({"sources": []}, "no file to measure"),
        ({"sources": ["a.txt", "a.txt"]}, r"a\.txt is named twice"),
        ({"sources": ["-"], "human": "-"}, "- is named twice"),
        ({"sources": ["a.txt"], "limit": 0}, "limit is 0"),
        ({"sources": ["a.txt"], "worst": -1}, "worst is -1"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            measure_files(**options)


def test_numpy_stays_quiet_on_short_texts():
    with np.errstate(all="raise"):
        report = build_report([measure(["a", "b b", ""], "x")])
    assert math.isnan(report.rows[0].figures["rep_1"].mean)
    assert "x: 3 texts of three word tokens or fewer are left out of Rep-n." in report.notes


def test_one_text_is_said_in_the_singular():
    notes = build_report([measure(["a"], "x"), measure(["b b", "c"], "y")]).notes
    assert "x: 1 text of three word tokens or fewer is left out of Rep-n." in notes
    assert "y and x have 2 and 1 text: they cannot be compared text by text." in notes
    assert build_report([measure(["a"], "x")]).rows[-1].name == "human (1 word)"
