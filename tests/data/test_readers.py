"""Every format gives its texts; every broken file one sentence with its name, line and what was expected."""

import csv
import gzip
import io
import json
import lzma
import os
import sys
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.data import read_texts
from scalegrad.data.records import Problems

TEXTS = ["one two", "drei, vier", "", 'a "quoted" word', "naïve ☕"]


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_plain_text_keeps_empty_lines(tmp_path, ending):
    path = write(tmp_path, "a.txt", "".join(text + ending for text in TEXTS))
    assert list(read_texts(path)) == TEXTS


def test_plain_text_by_blank_lines_and_whole(tmp_path):
    path = write(tmp_path, "a.txt", "one\ntwo\n\n \nthree\n")
    assert list(read_texts(path, separator="blank")) == ["one\ntwo", "three"]
    assert list(read_texts(path, separator="file")) == ["one\ntwo\n\n \nthree"]


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_jsonl_packed_or_not(tmp_path, suffix, pack):
    lines = "".join(json.dumps({"id": n, "out": text}) + "\n" for n, text in enumerate(TEXTS))
    path = write(tmp_path, "a.jsonl" + suffix, pack(lines.encode()))
    assert list(read_texts(path, field="out")) == TEXTS


def test_jsonl_of_strings_blank_lines_and_usual_fields(tmp_path):
    path = write(tmp_path, "a.jsonl", '"one"\n\n{"prefix": "p", "text": "p c", "continuation": "c"}\n{"answer": "x"}\n')
    assert list(read_texts(path)) == ["one", "c", "x"]


def test_half_an_emoji_becomes_a_replacement_character(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "a\\ud83d b"}\n{"text": "\\ud83d\\ude00"}\n')
    assert list(read_texts(path)) == ["a\ufffd b", "😀"]


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])), min_size=1))
def test_csv_is_what_was_written(tmp_path_factory, texts):
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerows([["id", "text"], *([str(n), text] for n, text in enumerate(texts))])
    path = write(tmp_path_factory.mktemp("csv"), "a.csv", written.getvalue())
    if any(text.strip() for text in texts):
        assert list(read_texts(path)) == texts


def test_csv_longer_than_the_csv_module_allows_by_default(tmp_path):
    path = write(tmp_path, "a.csv", "\ufefftext\n" + "x" * 200_000 + "\n")
    assert [len(text) for text in read_texts(path)] == [200_000]


def test_standard_input(monkeypatch):
    for given_, field, expected in [("one\ntwo\n", None, ["one", "two"]), ('{"a": "x"}\n', "a", ["x"])]:
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(given_.encode())))
        assert list(read_texts("-", field)) == expected


@pytest.mark.parametrize(
    ("name", "content", "field", "sentence"),
    [
        ("a.txt", b"fine\n\x89PNG\x00\x01\n", None, r"a\.txt, line 2: a NUL byte, so this is a binary file"),
        ("a.txt", b"fine\nbr\xf6ken\n", None, r"a\.txt, line 2: not UTF-8 \(byte 0xf6 at position 3\)"),
        ("a.txt", "fine\n".encode("utf-16"), None, r"a\.txt is UTF-16; expected UTF-8"),
        ("a.txt", "", None, r"a\.txt is empty: expected at least one text"),
        ("a.txt", " \n\n", None, r"a\.txt is empty"),
        ("a.txt", "x\n", "text", r"a\.txt is read as plain text, which has no field 'text'"),
        ("a.jsonl", "", None, r"a\.jsonl is empty"),
        ("a.csv", "", None, r"a\.csv is empty"),
        ("a.csv", "text\n", None, r"a\.csv is empty"),
        ("a.jsonl", '{"text": "x"}\n{"text": \n', None, r"a\.jsonl, line 2: not JSON \(Expecting value at character"),
        (
            "a.jsonl",
            '{"text": "x"}\n{"t": "y", "u": 1}\n',
            "text",
            r"line 2: no field 'text' \(its fields are 't'",
        ),
        (
            "a.jsonl",
            '{"t": "y", "u": "z"}\n',
            None,
            r'line 1: no field "continuation", "completion" or "text" and none',
        ),
        ("a.jsonl", "{}\n", None, r"line 1: no field .*its fields are \(none\)"),
        ("a.jsonl", '{"text": ["x"]}\n', "text", r"line 1: field 'text' is a list, not a text"),
        ("a.jsonl", '{"text": null}\n', None, r"line 1: the text is null, not a text"),
        ("a.jsonl", "[1]\n", None, r"line 1: the line is a list, not an object or a text"),
        ("a.jsonl", "[" * 100_000 + "\n", None, r"line 1: JSON nested too deeply|line 1: not JSON"),
        ("a.csv", "id,text\n1,x\n2\n", None, r"a\.csv, line 3: another number of columns \(1 column"),
        ("a.csv", 'text\n"x"y\n', None, r"a\.csv, line 2: broken CSV"),
        ("a.csv", 'text\n"never closed\n', None, r"a\.csv, line 2: broken CSV \(unexpected end of data\)"),
        ("a.csv", "id,body\n1,x\n", "text", r"a\.csv, line 2: no field 'text' \(its fields are 'id', 'body'\)"),
        ("a.jsonl.gz", b"not gzip", None, r"a\.jsonl\.gz: broken after line 0, it cannot be decompressed"),
        ("a.txt.gz", gzip.compress(b"text\n" * 999, mtime=0)[:-9], None, r"a\.txt\.gz: broken after line"),
        ("a.txt.xz", b"not xz", None, r"a\.txt\.xz: broken after line 0"),
        ("a.json", "[]", None, r"""a\.json: its suffix '\.json' is not one of "\.txt", "\.jsonl", "\.ndjson" or"""),
    ],
)
def test_broken_files_get_one_sentence(tmp_path, name, content, field, sentence):
    path = write(tmp_path, name, content)
    with pytest.raises(ValueError, match=sentence) as caught:
        list(read_texts(path, field))
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.txt: there is no such file"):
        list(read_texts(tmp_path / "no.txt"))
    with pytest.raises(ValueError, match="is a folder without a file that ends in"):
        read_texts(tmp_path)


def test_a_folder_is_its_files_at_any_depth_in_order(tmp_path):
    (tmp_path / "deep").mkdir()
    write(tmp_path, "b.txt", "three\n")
    write(tmp_path, "a.jsonl.gz", gzip.compress(b'{"text": "one"}\n"two"\n'))
    write(tmp_path, "deep/c.csv", "text\nfour\n")
    write(tmp_path, "notes.md", "no")
    seen = []
    texts = list(read_texts(tmp_path, progress=lambda *call: seen.append(call)))
    assert texts == ["one", "two", "three", "four"]
    sizes = [(tmp_path / name).stat().st_size for name in ("a.jsonl.gz", "b.txt", "deep/c.csv")]
    assert [done for _, done, _ in seen] == [sum(sizes[:n]) for n in (1, 2, 3)]
    assert {(what, total) for what, _, total in seen} == {(f"reading {tmp_path.name} (bytes)", sum(sizes))}


def test_an_empty_line_is_a_text_or_passed_over(tmp_path):
    path = write(tmp_path, "a.txt", "one\n\n \ntwo\n\n")
    assert list(read_texts(path)) == ["one", "", " ", "two", ""]
    assert list(read_texts(path, empty=False)) == ["one", "two"]
    path = write(tmp_path, "a.jsonl", '{"text": ""}\n\n{"text": "one"}\n')
    assert list(read_texts(path, empty=False)) == ["", "one"]  # said outright


def test_bad_lines_are_left_out_and_counted(tmp_path):
    write(tmp_path, "a.jsonl", b'{"text": "one"}\nnot json\n{"text": "\xff"}\n{"other": 1, "x": 2}\n{"text": 3}\n7\n')
    write(tmp_path, "b.csv", b'id,text\n1\n2,two\n"3"x,three\n4,\xff\n5,five\n')
    write(tmp_path, "c.txt", b"six\n\xff\nseven\n")
    problems = Problems(skip=True)
    assert list(read_texts(tmp_path, problems=problems)) == ["one", "two", "five", "six", "seven"]
    assert problems.count == 9
    lines = sorted(place.split(", line ")[1].split(":")[0] for places in problems.places.values() for place in places)
    assert lines == ["2", "2", "2", "3", "4", "4", "5", "5", "6"]
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: not JSON"):
        list(read_texts(tmp_path))
    write(tmp_path, "bad.jsonl", "no\nno\n")
    with pytest.raises(ValueError, match=r"bad\.jsonl is empty: .* \(2 left out: 2 × not JSON"):
        list(read_texts(tmp_path / "bad.jsonl", problems=Problems(skip=True)))


def test_bad_options_are_named(tmp_path):
    path = write(tmp_path, "x.txt", "words\n")
    for options, sentence in [
        ({"format": "xml"}, r'format is \'xml\'; it may be "txt", "jsonl" or "csv"'),
        ({"separator": "tab"}, r'separator is \'tab\'; it may be "line", "blank" or "file"'),
        ({"separator": "file", "format": "csv"}, r"separator 'file' is for plain text, but .*x\.txt is read as csv"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            read_texts(path, **options)


def test_line_too_long_to_be_a_text(tmp_path, monkeypatch):
    monkeypatch.setattr("scalegrad.data.records._LONGEST", 2**20)
    path = write(tmp_path, "a.txt", "x" * (2**20 + 1))
    for separator, sentence in [("line", "line 1: longer than 1 MiB"), ("file", "line 1: longer than 1 MiB")]:
        with pytest.raises(ValueError, match=sentence):
            list(read_texts(path, separator=separator))


@pytest.mark.parametrize(("name", "pack"), [("a.txt", bytes), ("a.txt.gz", gzip.compress)])
def test_progress_ends_at_the_size_on_disk(tmp_path, name, pack):
    path = write(tmp_path, name, pack(b"some words\n" * 5_000))
    seen = []
    assert sum(1 for _ in read_texts(path, progress=lambda *call: seen.append(call))) == 5_000
    assert seen == sorted(seen)
    assert seen[-1] == (f"reading {name} (bytes)", path.stat().st_size, path.stat().st_size)
    assert len(seen) > 5


def test_progress_of_a_pipe_counts_what_was_read():
    reading, writing = os.pipe()
    os.write(writing, b"some words\n" * 300)
    os.close(writing)
    seen = []
    assert (
        sum(1 for _ in read_texts(f"/dev/fd/{reading}", format="txt", progress=lambda *call: seen.append(call))) == 300
    )
    os.close(reading)
    assert [call[1:] for call in seen] == [(11 * 256, 0), (11 * 300, 0)]  # how much will come nobody knows
