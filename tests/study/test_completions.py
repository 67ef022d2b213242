"""Completion files: read, matched, refused with the first difference."""

from __future__ import annotations

import gzip

import pytest

from scalegrad.data import Problems
from scalegrad.study import read_checks, read_completions
from tests.study.studies import write_jsonl


def records(*texts, key="id"):
    return [{key: i, "prefix": f"prefix {i}", "continuation": text} for i, text in enumerate(texts)]


def test_lines_are_matched_by_id_in_any_order(tmp_path):
    one = write_jsonl(tmp_path / "one.jsonl", records("a", "b"))
    two = write_jsonl(tmp_path / "two.jsonl", records("c", "d")[::-1])
    read = read_completions({"one": one, "two": two})
    assert read.prefixes == {"0": "prefix 0", "1": "prefix 1"}
    assert read.texts == {"one": {"0": "a", "1": "b"}, "two": {"0": "c", "1": "d"}}


def test_lines_without_id_are_matched_by_their_number_and_fields_may_have_other_names(tmp_path):
    lines = [{"context": "p", "output": "x"}, {"context": "q", "output": "y"}]
    file = write_jsonl(tmp_path / "one.jsonl", lines)
    read = read_completions({"one": file}, prefix_field="context", continuation_field="output")
    assert read.prefixes == {"1": "p", "2": "q"}
    assert read.texts["one"] == {"1": "x", "2": "y"}


def test_another_prefix_is_refused_with_the_difference_quoted(tmp_path):
    one = write_jsonl(tmp_path / "one.jsonl", [{"id": 7, "prefix": "the brown horse runs", "continuation": "x"}])
    two = write_jsonl(tmp_path / "two.jsonl", [{"id": 7, "prefix": "the brown house runs", "continuation": "x"}])
    with pytest.raises(ValueError, match=r"prefix '7' .* from character 13 on, 'rse runs' against 'use runs'"):
        read_completions({"one": one, "two": two})


@pytest.mark.parametrize("swap", [False, True])
def test_a_missing_completion_is_refused_whichever_file_lacks_it(tmp_path, swap):
    files = {
        "one": write_jsonl(tmp_path / "one.jsonl", records("a", "b")),
        "two": write_jsonl(tmp_path / "two.jsonl", records("c")),
    }
    files = dict(reversed(files.items())) if swap else files
    with pytest.raises(ValueError, match=r"two\.jsonl has no completion of prefix '1', .* 'prefix 1'"):
        read_completions(files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: expected at least one completion"),
        ("{broken\n", "line 1: not JSON"),
        ("[1]\n", "line 1: the line is a list"),
        ('{"id": 1, "prefix": "p"}\n', r"line 1: no field 'continuation' \(its fields are 'id', 'prefix'\)"),
        ('{"id": 1, "prefix": "p", "continuation": 3}\n', "field 'continuation' is a number, not a text"),
        ('{"id": 1, "prefix": "p", "continuation": "c"}\n' * 2, "line 2: its id was used before"),
        (
            '{"id": 1, "prefix": "p", "continuation": "c"}\n{"prefix": "p", "continuation": "c"}\n',
            "line 2: either every line or none must have a field 'id'",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, text, message):
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_completions({"one": file})


def test_bad_lines_and_prefixes_that_one_system_lacks_are_left_out(tmp_path):
    one = write_jsonl(tmp_path / "one.jsonl", records("a", "b", "c"))
    two = tmp_path / "two.csv.gz"
    two.write_bytes(gzip.compress(b"id,prefix,continuation\n0,prefix 0,x\n1\n2,prefix 2,z\n"))
    problems = Problems(skip=True)
    read = read_completions({"one": one, "two": two}, problems=problems)
    assert read.texts == {"one": {"0": "a", "2": "c"}, "two": {"0": "x", "2": "z"}}
    assert problems.count == 2
    with pytest.raises(ValueError, match=r"two\.csv\.gz, line 3: another number of columns"):
        read_completions({"one": one, "two": two})


def test_half_a_surrogate_pair_and_other_encodings_do_not_pass(tmp_path):
    file = tmp_path / "odd.jsonl"
    file.write_text('{"id": 1, "prefix": "p", "continuation": "a\\ud83d b"}\n')
    assert read_completions({"one": file}).texts["one"]["1"] == "a\ufffd b"
    file.write_bytes(b'{"id": 1, "prefix": "caf\xe9", "continuation": "x"}\n')
    with pytest.raises(ValueError, match="not UTF-8"):
        read_completions({"one": file})


def test_checks_of_ones_own(tmp_path):
    file = write_jsonl(tmp_path / "checks.jsonl", [{"prefix": "2 + 2 is", "right": " 4.", "wrong": " fish."}])
    (check,) = read_checks(file)
    assert (check.kind, check.prefix, check.texts) == ("check", "2 + 2 is", (" 4.", " fish."))
