"""`scalegrad measure` as a user runs it."""

import io
import json
import sys
import types

import pytest

from scalegrad.cli import main
from scalegrad.results.measure import side_by_side

STUCK = "It goes on and on and on and on and on and on and on and on."
FINE = "Nothing in this line of text is said a second time, we hope."


@pytest.fixture(autouse=True)
def few_human_blocks(monkeypatch):
    monkeypatch.setattr(side_by_side, "_ENOUGH", 500)  # for speed


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["measure", *map(str, arguments)])
    captured = capsys.readouterr()
    return ended.value.code or 0, captured.out, captured.err


@pytest.fixture
def files(tmp_path):
    for name, texts in [("mle", [STUCK] * 8 + [FINE] * 2), ("sg", [STUCK] + [FINE] * 9)]:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"out": text}) + "\n" for text in texts))
    return tmp_path


def test_two_files_side_by_side(capsys, files):
    code, out, err = run(capsys, files / "mle.jsonl", files / "sg.jsonl", "--html", files / "report.html")
    assert (code, err) == (0, "")
    assert "mle.jsonl: 80% of the texts end stuck in a loop (human text: 0%)" in out
    assert "sg.jsonl: 10% of the texts end stuck in a loop" in out
    assert "sg.jsonl − mle.jsonl, text by text" in out
    assert "Worst texts of mle.jsonl" in out
    assert "human (" in out
    assert "<mark>" in (files / "report.html").read_text()


def test_json_is_the_whole_output(capsys, files):
    code, out, _ = run(capsys, files / "mle.jsonl", "--field", "out", "--json", "--worst", "1", "--limit", "9")
    result = json.loads(out)
    assert code == 0
    assert [row["texts"] for row in result["rows"] if not row["human"]] == [9]
    assert result["rows"][0]["figures"]["stuck"]["mean"] == pytest.approx(8 / 9)
    assert len(result["worst"]["mle.jsonl"]) == 1


def test_standard_input_and_own_human_text(capsys, files, monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(f"{STUCK}\n{FINE}\n".encode())))
    (files / "own.txt").write_text(f"{FINE}\n" * 12)
    code, out, _ = run(capsys, "-", "--human", files / "own.txt", "--json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert [(row["name"], row["texts"]) for row in rows] == [("standard input", 2), ("human (own.txt)", 12)]


def test_beginnings_of_systems_that_differ_in_length(capsys, files, monkeypatch):
    """STUCK has 16 words, FINE 13; of a short text nothing is measured, wherever it stands.

    What is measured pairs like with like: no text differs from its own, but in another order, or with others, some do.
    """
    texts = [FINE, "Too short.", STUCK, FINE]
    (files / "a.txt").write_text("".join(f"{text}\n" for text in texts))
    given = f"{FINE}\n{STUCK}\n{STUCK}\nAlso short.\n".encode()
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(given)))
    notes = [
        "Texts are cut after 13 words; those with fewer are left out.",
        "a.txt: 2 of 4 texts are left out: 1 too short, 1 too short only in another file.",
        "standard input: 2 of 4 texts are left out: 1 too short, 1 too short only in another file.",
    ]
    page = files / "report.html"
    code, out, _ = run(capsys, files / "a.txt", "-", "--words", "13", "--json", "--html", page)
    result = json.loads(out)
    assert code == 0
    assert [(row["name"], row["texts"], row["median_words"]) for row in result["rows"][:2]] == [
        ("a.txt", 2, 13),
        ("standard input", 2, 13),
    ]
    assert [quote["number"] for quote in result["worst"]["standard input"]] == [3, 1]
    assert [row["figures"]["stuck"]["mean"] for row in result["rows"][:2]] == [0.5, 0.5]
    assert result["differences"][0]["figures"]["stuck"] == {"mean": 0.0, "low": 0.0, "high": 0.0, "p_value": 1.0}
    assert result["notes"][:3] == notes
    assert all(note in page.read_text() for note in notes)

    code, out, _ = run(capsys, files / "a.txt", "--words", "13")
    assert code == 0
    assert "• Texts are cut after 13 words; those with fewer are left out." in out
    assert "• a.txt: 1 of 4 texts is left out: 1 too short." in out


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a.txt", b"\x89PNG\r\n\x00\x00", [], "line 1: not UTF-8 (byte 0x89 at position 1)"),
        ("a.txt", b"ELF\x00\n", [], "line 1: a NUL byte, so this is a binary file; expected UTF-8 text"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "b"\n', [], "line 2: not JSON"),
        ("a.jsonl", b'{"out": "a", "id": 1}\n', ["--field", "text"], "no field 'text' (its fields are 'out', 'id')"),
        ("a.txt", b"", [], "is empty: expected at least one text"),
        ("a.txt", b"x\n", ["--limit", "0"], "limit is 0; expected at least 1 text"),
        ("a.txt", b"x\n", ["--words", "0"], "words is 0; expected at least 1 word of each text"),
        ("a.txt", b"x\n", ["--words", "-3"], "words is -3; expected at least 1 word of each text"),
        (
            "a.txt",
            b"x y\nx\n",
            ["--words", "3"],
            "words is 3; expected at most 2: none of the texts read has more in a.txt",
        ),
        ("a.txt", b"\n\nx\n", ["--words", "1", "--limit", "2"], "none of the texts read has a word in a.txt"),
        ("a.txt", b"x\n", ["--html", "/no/such/folder/r.html"], "its folder /no/such/folder does not exist"),
        ("a.parquet", b"PAR1", [], "its suffix '.parquet' is not one of"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(capsys, tmp_path, name, content, options, sentence):
    (tmp_path / name).write_bytes(content)
    code, out, err = run(capsys, tmp_path / name, *options)
    assert (code, out) == (2, "")
    assert err.startswith("scalegrad: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_missing_file_no_file_and_mixed_options(capsys, files):
    for arguments, sentence in [
        ([files / "no.txt"], "FILE: there is no "),
        ([], "FILE is missing; expected at least one, or - for standard input"),
    ]:
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "")
        assert sentence in err


def test_a_folder_is_measured_as_one_system(capsys, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{FINE}\n" * 3)
    code, out, _ = run(capsys, tmp_path, "--json")
    assert code == 0
    assert [(row["name"], row["texts"]) for row in json.loads(out)["rows"] if not row["human"]] == [(tmp_path.name, 6)]


def test_bad_lines_are_left_out_on_demand(capsys, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": FINE}) + "\nbroken\n" + json.dumps({"text": FINE}) + "\n")
    assert run(capsys, path)[0] == 2
    code, out, err = run(capsys, path, "--json", "--skip-bad")
    assert code == 0
    assert json.loads(out)["rows"][0]["texts"] == 2
    assert err.count("1 left out: 1 × not JSON") == 1


def test_help_has_an_example(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "scalegrad measure mle.jsonl sg.jsonl" in out
