"""Articles and summaries from files: every format, and everything that can be wrong with a record counted and told."""

import json
import lzma

import pytest

from scalegrad.data.pairs import Pair, Problems, hub_pairs, read_pairs, read_records, split_files
from scalegrad.data.sentences import sentences

STORY = "It rained. It poured.\n\nNobody came.\n\n@highlight\n\nRain fell\n\n@highlight\n\nNobody came to see it\n"


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("record", "pair"),
    [
        ({"article": "A b. C d.", "highlights": "one\ntwo"}, Pair("7", ("A b.", "C d."), ("one\ntwo",))),
        ({"source": ["A b.", "", "C d."], "target": ["one", "two"]}, Pair("7", ("A b.", "C d."), ("one", "two"))),
        ({"document": "A b.", "summary": ["one ", "two"]}, Pair("7", ("A b.",), ("one\ntwo",))),
        ({"src": [["A", "b", "."], ["C"]], "tgt": [["one"], ["two"]]}, Pair("7", ("A b .", "C"), ("one\ntwo",))),
        ({"text": "A b.", "references": "one"}, Pair("7", ("A b.",), ("one",))),
        ({"text": "A b.", "abstract": " one  two \n\n three"}, Pair("7", ("A b.",), ("one two\nthree",))),
    ],
)
def test_jsonl_fields(tmp_path, record, pair):
    path = write(tmp_path / "pairs.jsonl", json.dumps({"id": 7, **record}) + "\n")
    assert read_pairs(path) == [pair]


def test_csv_with_lines_inside_fields_and_xz(tmp_path):
    text = 'id,article,highlights\nx1,"It rained. ""Why?"" he\nasked.","one\ntwo"\n'
    path = tmp_path / "test-1.csv.xz"
    path.write_bytes(lzma.compress(text.encode()))
    assert read_pairs(path) == [Pair("x1", ("It rained.", '"Why?" he', "asked."), ("one\ntwo",))]


def test_story_and_a_folder_of_them(tmp_path):
    expected = Pair("a", ("It rained.", "It poured.", "Nobody came."), ("Rain fell\nNobody came to see it",))
    write(tmp_path / "a.story", STORY)
    assert read_pairs(tmp_path / "a.story") == [expected]
    write(tmp_path / "b.story", "Text only.\n")
    with pytest.warns(UserWarning, match=r"1 of 2 records is left out: 1 without a summary \(b\.story\)"):
        assert read_pairs(tmp_path) == [expected]


def test_what_is_wrong_is_counted_and_told_once(tmp_path):
    lines = [
        '{"article": "Fine.", "summary": "ok"}',
        "not json",
        '["a list"]',
        '{"article": "  ", "summary": "ok"}',
        '{"article": "Fine.", "summary": "\\n"}',
        '{"article": 3, "summary": "ok"}',
        '{"summary": "ok"}',
        '{"article": "Fine."}',
        "",
        '{"article": ["Fine.", 4], "summary": "ok"}',
        '{"article": "half \\ud800 sign", "summary": "ok"}',
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_bytes("\n".join(lines).encode() + b'\n{"article": "bad \xff byte", "summary": "ok"}\n')
    with pytest.warns(UserWarning, match="left out") as told:
        assert read_pairs(path) == [Pair("line 1", ("Fine.",), ("ok",))]
    assert len(told) == 1
    sentence = str(told[0].message)
    assert "10 of 11 records are left out" in sentence
    assert "8 malformed (line 2: not JSON, line 3: list, not an object, line 6: field 'article' is int" in sentence
    assert "1 without an article (line 4)" in sentence
    assert "1 without a summary (line 5)" in sentence
    places = [record.place for record in read_records(path) if record.problem]
    assert places == [f"line {number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 11, 12)]


def test_broken_csv_rows_do_not_end_the_reading(tmp_path):
    path = write(tmp_path / "pairs.csv", 'article,summary\nA b.,one,extra\n"C d."x,two\nE f.,three\n')
    with pytest.warns(UserWarning, match=r"2 of 3 records are left out: 2 malformed \(line 2: 3 columns, not 2"):
        assert [pair.references for pair in read_pairs(path)] == [("three",)]


def test_nothing_usable_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"1 of 1 record is left out: 1 malformed \(line 1: not JSON\)"):
        read_pairs(write(tmp_path / "pairs.jsonl", "nothing\n"))
    with pytest.raises(ValueError, match="is empty: expected articles and summaries"):
        read_pairs(write(tmp_path / "none.jsonl", "\n"))
    with pytest.raises(ValueError, match=r"suffix '\.pdf' is not one of"):
        read_pairs(write(tmp_path / "a.pdf", "x"))
    with pytest.raises(FileNotFoundError):
        read_pairs(tmp_path / "no.jsonl")


def test_articles_alone_need_no_summary(tmp_path):
    path = write(tmp_path / "article.txt", "First here. Second here.")
    assert [record.pair for record in read_records(path, summaries=False)] == [
        Pair("article", ("First here.", "Second here."))
    ]


def test_split_files_by_their_names(tmp_path):
    for name in ("train.0.jsonl", "train.1.jsonl", "valid.csv", "test-500.csv.xz", "training-notes.txt", "test.pdf"):
        write(tmp_path / name, "")
    assert [path.name for path in split_files(tmp_path, "train")] == ["train.0.jsonl", "train.1.jsonl"]
    assert [path.name for path in split_files(tmp_path, "validation")] == ["valid.csv"]
    assert [path.name for path in split_files(tmp_path, "test")] == ["test-500.csv.xz"]


def test_hub_data(monkeypatch):
    import datasets

    asked = []

    def load(name, config):
        asked.append((name, config))
        return {"validation": [{"id": "u", "article": "A b.", "highlights": "one\ntwo"}, {"article": ""}]}

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.warns(UserWarning, match="1 of 2 records"):
        assert hub_pairs("cnn_dailymail", "validation") == [Pair("u", ("A b.",), ("one\ntwo",))]
    assert asked == [("abisee/cnn_dailymail", "3.0.0")]
    with pytest.raises(ValueError, match="has no train split; it has validation"):
        hub_pairs("some/name:config", "train")
    assert asked[-1] == ("some/name", "config")


def test_only_the_first_places_are_named():
    problems = Problems()
    for number in range(5):
        problems.add("malformed", f"line {number}")
    assert problems.sentence("f", 9) == "f: 5 of 9 records are left out: 5 malformed (line 0, line 1, line 2, …)"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He paid $3.50 to Dr. No. Then he left.", ["He paid $3.50 to Dr. No. Then he left."]),
        ("It is 5 p.m. Monday. 12 came.", ["It is 5 p.m. Monday.", "12 came."]),
        ("So said I. Nobody heard.", ["So said I.", "Nobody heard."]),
        ("in lower case. it goes on", ["in lower case. it goes on"]),
        ("", []),
    ],
)
def test_sentences(text, parts):
    assert sentences(text) == parts
