"""Articles and summaries from files: every format, and everything that can be wrong with a record counted and told."""

import io
import json
import lzma
import sys
import types

import pytest

from scalegrad.data.pairs import Pair, hub_pairs, read_pairs, split_files
from scalegrad.data.records import Problems
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
    problems = Problems(skip=True)
    assert read_pairs(tmp_path, problems=problems) == [expected]
    assert problems.places == {"no summary": [str(tmp_path / "b.story")]}


def test_a_folder_of_anything_and_standard_input(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    write(tmp_path / "a.jsonl", '{"article": "One here."}\n')
    write(tmp_path / "deep" / "b.txt", "Two here.\n")
    assert [pair.text for pair in read_pairs(tmp_path, summaries=False)] == ["One here.", "Two here."]
    lines = b'{"article": "One here.", "summary": "one"}\n"Two here."\n'
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(lines)))
    assert [pair.text for pair in read_pairs("-", summaries=False)] == ["One here.", "Two here."]


def test_what_is_wrong_is_counted_or_stops_the_reading(tmp_path):
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
    problems = Problems(skip=True)
    assert [pair.source for pair in read_pairs(path, problems=problems)] == [("Fine.",), ("half \ufffd sign",)]
    assert problems.count == 9
    assert sum(problems.counts[what] for what in ("not JSON", "no article", "no summary", "not UTF-8")) == 4
    numbers = {place.split("line ")[1].split(":")[0] for places in problems.places.values() for place in places}
    assert numbers == {"2", "3", "4", "5", "6", "7", "8", "10", "12"}
    with pytest.raises(ValueError, match=r"pairs\.jsonl, line 2: not JSON"):
        read_pairs(path)


def test_broken_csv_rows_do_not_end_the_reading(tmp_path):
    path = write(tmp_path / "pairs.csv", 'article,summary\nA b.,one,extra\n"C d."x,two\nE f.,three\n')
    problems = Problems(skip=True)
    assert [pair.references for pair in read_pairs(path, problems=problems)] == [("three",)]
    assert problems.counts == {"another number of columns": 1, "broken CSV": 1}


def test_nothing_usable_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"is empty: .* \(1 left out: 1 × not JSON"):
        read_pairs(write(tmp_path / "pairs.jsonl", "nothing\n"), problems=Problems(skip=True))
    with pytest.raises(ValueError, match="is empty: expected at least one article and summary"):
        read_pairs(write(tmp_path / "none.jsonl", "\n"))
    with pytest.raises(ValueError, match=r"suffix '\.pdf' is not one of"):
        read_pairs(write(tmp_path / "a.pdf", "x"))
    with pytest.raises(FileNotFoundError):
        read_pairs(tmp_path / "no.jsonl")


def test_articles_alone_need_no_summary(tmp_path):
    path = write(tmp_path / "article.txt", "First here. Second here.")
    assert read_pairs(path, summaries=False) == [Pair("article", ("First here.", "Second here."))]


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
    problems = Problems(skip=True)
    assert hub_pairs("cnn_dailymail", "validation", problems) == [Pair("u", ("A b.",), ("one\ntwo",))]
    assert problems.count == 1
    with pytest.raises(ValueError, match="row 2: no field"):
        hub_pairs("cnn_dailymail", "validation")
    assert set(asked) == {("abisee/cnn_dailymail", "3.0.0")}
    with pytest.raises(ValueError, match="has no train split; it has validation"):
        hub_pairs("some/name:config", "train")
    assert asked[-1] == ("some/name", "config")


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
