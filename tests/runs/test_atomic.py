"""Files are whole or not there."""

import json
import os

import pytest

from scalegrad.runs import check_writable_folder, replacing, write_json, write_lines, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError, match="half way"):
        _fail_half_way(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def _fail_half_way(path):
    with replacing(path) as unfinished:
        unfinished.write_text("ne")
        raise RuntimeError("half way")


def test_json_has_no_words_for_nan_and_infinity(tmp_path):
    write_json(tmp_path / "a.json", {"nan": float("nan"), "list": (1, float("inf"), "é"), "path": tmp_path})
    assert json.loads((tmp_path / "a.json").read_text()) == {"nan": None, "list": [1, None, "é"], "path": str(tmp_path)}


def test_lines_are_one_json_each(tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"text": "one\ntwo"}, {"text": "\ud800"}])
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["one\ntwo", "?"]


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"^out: .*file is a file; expected a folder to write to$"):
        check_writable_folder(tmp_path / "file", "out")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that not even root can write to")
def test_a_folder_that_cannot_be_written_to():
    with pytest.raises(OSError, match=r"^out: /proc/self/run cannot be written to \(No such file or directory\)$"):
        check_writable_folder("/proc/self/run", "out")


def test_a_folder_can_be_tried_without_being_made(tmp_path):
    (tmp_path / "file").write_text("")
    assert check_writable_folder(tmp_path / "a" / "b", "out", make=False) == tmp_path / "a" / "b"
    for path in (tmp_path / "file", tmp_path / "file" / "b"):
        with pytest.raises(NotADirectoryError, match=r"^out: .*/file is a file; expected a folder to write to$"):
            check_writable_folder(path, "out", make=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
