"""Only the first words of each text: what is cut, what is left out, and that texts still pair."""

import io
import os
import random
import sys
import types
from pathlib import Path

import pytest

from scalegrad.results.measure import measure_files


@pytest.fixture
def written(tmp_path):
    """written(a=["a text", …]): the paths of a.txt, …, a text a line."""

    def write(**files):
        for name, texts in files.items():
            (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
        return [str(tmp_path / f"{name}.txt") for name in files]

    return write


def systems(report):
    return [row for row in report.rows if not row.human]


def test_figures_counted_by_hand(written):
    report = measure_files(written(x=["a b a b c d", "a b", "a a a a b", "a b c d"]), words=4)
    (row,) = systems(report)
    assert (row.texts, row.median_words, row.uniq_w) == (3, 4, 4)
    # abab, aaaa, abcd: of 4 words 2, 3, 0 were said before, of 3 pairs 1, 2, 0, of 2 triples 0, 1, 0
    assert row.figures["rep_1"].mean == pytest.approx((2 / 4 + 3 / 4) / 3)
    assert row.figures["rep_2"].mean == pytest.approx((1 / 3 + 2 / 3) / 3)
    assert row.figures["rep_3"].mean == pytest.approx(1 / 2 / 3)
    assert row.figures["rep_4"].mean == 0
    assert row.figures["words"].mean == 4
    assert [(quote.number, quote.before) for quote in report.worst["x.txt"]] == [
        (3, "a a a a"),
        (1, "a b a b"),
        (4, "a b c d"),
    ]
    assert report.rows[1].name == "human (4 words)"


def test_texts_are_cut_after_the_clean_up_and_keep_their_spaces(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('"It \'s late , they run . On and on ."\n"one  two\\n\\nthree\\tfour five"\n"is n\'t it , now"\n')
    report = measure_files([str(path)], words=4)
    assert [quote.before for quote in report.worst["x.jsonl"]] == ["one  two\n\nthree\tfour", "It's late, they run."]
    assert "x.jsonl: 1 of 3 texts is left out: 1 too short." in report.notes  # "isn't it, now" has three words


def test_a_text_too_short_in_one_file_is_left_out_of_all_that_pair(written):
    a = ["a b c d", "a a b c", "a a", "a a a b", "a a a a"]
    b = ["a b c", "a b c d", "a b c d", "a b c d", "a a b b"]
    report = measure_files(written(a=a, b=b), words=4)
    assert [row.texts for row in systems(report)] == [3, 3]
    (pair,) = report.differences
    # texts 2, 4 and 5: Rep-1 is 1/4, 2/4, 3/4 and 0, 0, 2/4
    assert pair.figures["rep_1"].mean == pytest.approx((0 + 0 + 2 / 4) / 3 - (1 / 4 + 2 / 4 + 3 / 4) / 3)
    assert [quote.number for quote in report.worst["a.txt"]] == [5, 4, 2]
    assert report.notes[:3] == [
        "Texts are cut after 4 words; those with fewer are left out.",
        "a.txt: 2 of 5 texts are left out: 1 too short, 1 too short only in another file.",
        "b.txt: 2 of 5 texts are left out: 1 too short, 1 too short only in another file.",
    ]


def test_files_with_other_numbers_of_texts_leave_out_their_own(written):
    """b and c come to as many texts as a has left, and must not pair with it for that."""
    report = measure_files(written(a=["x y", "x", "x y"], b=["x y z", "x y"], c=["x", "x y", "x", "x y"]), words=2)
    assert [row.texts for row in systems(report)] == [2, 2, 2]
    assert report.differences == []
    assert [note for note in report.notes if "left out: " in note] == [
        "a.txt: 1 of 3 texts is left out: 1 too short.",
        "c.txt: 2 of 4 texts are left out: 2 too short.",
    ]
    assert "b.txt and a.txt have 2 and 3 texts: they cannot be compared text by text." in report.notes
    assert "c.txt and a.txt have 4 and 3 texts: they cannot be compared text by text." in report.notes


def test_a_file_without_a_pair_does_not_change_those_that_have_one(written):
    report = measure_files(written(a=["x y", "x", "x y"], b=["x y"] * 4, c=["x y z", "x y", "x"]), words=2)
    assert [row.texts for row in systems(report)] == [1, 4, 1]
    assert [(pair.first, pair.second) for pair in report.differences] == [("c.txt", "a.txt")]
    assert report.worst == {"a.txt": [], "b.txt": [], "c.txt": []}  # no text is long enough for Rep-n


def test_the_report_is_that_of_files_cut_by_hand(written):
    draw = random.Random(0)
    a, b = ([" ".join(draw.choices("abcdefgh", k=draw.randrange(5, 40))) for _ in range(200)] for _ in range(2))
    kept = [number for number in range(200) if len(a[number].split()) >= 12 and len(b[number].split()) >= 12]
    by_hand = [[" ".join(texts[number].split()[:12]) for number in kept] for texts in (a, b)]
    expected = measure_files(written(a=by_hand[0], b=by_hand[1]))
    report = measure_files(written(a=a, b=b), words=12)
    assert 100 < len(kept) < 180
    assert str(report.rows) == str(expected.rows)  # as strings, NaN is equal to itself
    assert str(report.differences) == str(expected.differences)
    assert [quote.number for quote in report.worst["a.txt"]] == [
        kept[quote.number - 1] + 1 for quote in expected.worst["a.txt"]
    ]


def test_what_can_be_read_only_once(written, monkeypatch):
    """Standard input and a pipe, each paired with a file."""
    texts = ["a b c d e", "a b", "a a a a a"]
    (path,) = written(x=["a a b c"] * 3)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO("\n".join(texts).encode())))
    reading, writing = os.pipe()
    os.write(writing, "\n".join(texts).encode())
    os.close(writing)
    for source in ("-", f"/dev/fd/{reading}"):
        report = measure_files([path, source], format="txt", words=4)
        assert [row.texts for row in systems(report)] == [2, 2]
        assert report.differences[0].figures["rep_1"].mean == pytest.approx((0 + 3 / 4) / 2 - 1 / 4)
    os.close(reading)


def test_own_human_texts_are_cut_and_not_paired(written):
    x, own = written(x=["a b c d e", "a b", "a b c d"], own=["a a a a b", "a b c d", "a"])
    report = measure_files([x], human=own, words=4)
    assert [(row.name, row.texts, row.median_words) for row in report.rows] == [
        ("x.txt", 2, 4),
        ("human (own.txt)", 2, 4),
    ]
    assert report.rows[1].figures["rep_1"].mean == pytest.approx((3 / 4 + 0) / 2)
    assert report.notes[1:3] == [
        "x.txt: 1 of 3 texts is left out: 1 too short.",
        "human (own.txt): 1 of 3 texts is left out: 1 too short.",
    ]


def test_nothing_is_left_out_where_all_are_long_enough(written):
    report = measure_files(written(x=["a b c d e", "a b c d"], y=["e f g h", "e f g h i j"]), words=1)
    assert report.notes[0] == "Texts are cut after 1 word; those with fewer are left out."
    assert not any("left out: " in note or "differ in length" in note for note in report.notes)


def test_only_texts_within_the_limit_count(written):
    report = measure_files(written(a=["x y", "x y", "x"], b=["x y", "x", "x y", "x"]), words=2, limit=2)
    assert [row.texts for row in systems(report)] == [1, 1]
    assert len(report.differences) == 1


def test_too_many_words_are_refused_in_a_sentence(written):
    a, b, c = written(a=["x y z", "x"], b=["x y", "x y z z"], c=["x"])
    for sources, human, words, sentence in [
        ([a], None, 0, "words is 0; expected at least 1 word of each text"),
        ([a, b], None, 4, "words is 4; expected at most 3: none of the texts read has more in a.txt"),
        ([a], c, 3, r"words is 3; expected at most 1: none of the texts read has more in human \(c.txt\)"),
        (
            [a, b],
            None,
            3,
            "words is 3; expected at most 2: none of the texts read has more in each of a.txt, b.txt, "
            "compared text by text",
        ),
    ]:
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            measure_files(sources, human, words=words)


def test_texts_without_a_word_are_refused_in_a_sentence(written):
    a, b, c = written(a=["", "", "x y"], b=["x", "", ""], c=["", "", "x"])
    with pytest.raises(ValueError, match=r"^none of the texts read has a word in a\.txt$"):
        measure_files([a], words=1, limit=2)
    sentence = r"none of the texts read has a word in each of a\.txt, b\.txt, c\.txt, compared text by text"
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        measure_files([a, b, c], words=1)


@pytest.mark.parametrize("limit", [None, 600])
def test_progress_counts_on_through_both_readings(written, monkeypatch, limit):
    x, own = written(x=["a b c d"] * 1000, own=["e f g h i"] * 1000)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(b"a b c d\n" * 1000)))
    calls = {}
    measure_files(
        [x, "-"], own, words=2, limit=limit,
        progress=lambda what, done, total: calls.setdefault(what, []).append((done, total)),
    )  # fmt: skip
    assert all(reads == sorted(reads) for reads in calls.values())
    lines = 1000 if limit is None else 512  # the last of which is reported
    assert {what: reads[-1] for what, reads in calls.items()} == {
        f"reading {Path(x).name} (bytes)": (2 * 8 * lines, 2 * 8 * 1000),
        f"reading {Path(own).name} (bytes)": (2 * 10 * lines, 2 * 10 * 1000),
        "reading standard input (bytes)": (8 * lines, 0),  # held, so read once
    }
