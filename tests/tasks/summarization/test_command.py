"""The three verbs on a tiny BERT, from the embedded data to a page; mistakes end with one sentence."""

import contextlib
import json

import pytest

from scalegrad.cli import main
from tests.tiny_bert import save_tiny_bert


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save_tiny_bert(tmp_path_factory.mktemp("bert"), positions=192)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["summarize", *map(str, arguments)])
    told = capsys.readouterr()
    return ended.value.code or 0, told.out, told.err


def test_train_evaluate_and_summarise(bert, tmp_path, capsys, monkeypatch):
    out = tmp_path / "runs"
    drawn = []
    monkeypatch.setattr(
        "scalegrad.tasks.summarization.command.bars", lambda: contextlib.nullcontext(lambda *given: drawn.append(given))
    )
    settings = ["--out", out, "--recipe", "small", "--limit", "8", "--max-steps", "2", "--json"]
    code, told, err = run(capsys, "train", bert, *settings, "-o", "mle", "-o", "sg=0.8")
    assert code == 0
    assert [one["steps"] for one in json.loads(told)] == [2, 2]
    assert err.count("articles are longer than 192 tokens and cut there") == 1  # said once, for both objectives
    assert (out / "selector" / "model" / "config.json").is_file()
    steps = [(what.split(" · ")[0], done, total) for what, done, total in drawn]
    assert [step for step in steps if step[0] != "selector"] == [
        (name, done, 2) for name in ("mle", "sg=0.8") for done in (1, 2)
    ]
    assert steps[0][:2] == ("selector", 1)

    code, told, err = run(
        capsys, "evaluate", out, "--limit", "3", "--beta", "0", "--beta", "1", "--strategy", "top_k=40", "--json",
        "--no-mover", "--html", tmp_path / "report.html",
    )  # fmt: skip
    assert code == 0
    found = json.loads(told)
    figures = found[str(out / "sg=0.8")]
    assert figures["completion"]["beam"]["n_texts"] == 3
    assert figures["notes"] == ["3 of 3 articles are longer than 192 tokens and cut there."]
    assert set(figures["length_normalisation"]["validation_scores"]) == {"0.0", "1.0"}
    assert "FearNet" in (tmp_path / "report.html").read_text()
    assert json.loads((out / "mle" / "evaluation.json").read_text())["scitldr"]["human"]["references"]["words"] > 5

    articles = tmp_path / "articles.jsonl"
    long = "the cat sat on the mat . " * 60
    articles.write_text(f'{{"id": "a", "article": "the cat sat ."}}\nbroken\n{{"article": ""}}\n{{"text": "{long}"}}\n')
    code, told, err = run(capsys, "write", out / "mle", articles, "--new-tokens", "4")
    assert code == 0
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["id"] for line in lines] == ["a", "line 2", "line 3", "line 4"]
    assert [line.get("problem") for line in lines] == [None, "malformed: not JSON", "without an article", None]
    assert [bool(line["summary"]) for line in lines] == [True, False, False, True]
    assert err.strip() == (
        "2 summaries; 2 of 4 articles could not be read: their lines say why; "
        "1 of 2 articles is longer than 192 tokens and cut there"
    )
    code, told, _ = run(
        capsys,
        "write",
        out / "mle",
        articles,
        "--new-tokens",
        "4",
        "--out",
        tmp_path / "s.jsonl",
        "--json",
    )
    assert json.loads(told)["left_out"] == 2
    assert [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()] == lines


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "--out", "OUT", "--data", "./none"], "scalegrad: --data: there is no file or folder ./none"),
        (["train", "./none", "--out", "OUT"], "scalegrad: MODEL: there is no file or folder ./none"),
        (
            ["train", "--out", "OUT", "--recipe", "big"],
            "scalegrad: --recipe must be one of paper, abstracts, small, finetune",
        ),
        (
            ["train", "--out", "OUT", "--recipe", "small", "-o", "rl"],
            "scalegrad: Invalid value for -o: objective must be mle",
        ),
        (["evaluate", "OUT"], "scalegrad: FOLDER: there is no"),
        (["write", "m", "none.jsonl"], "scalegrad: none.jsonl: there is no such file"),
        (["write", "m", "a.txt", "--json"], "scalegrad: --json reports on standard output"),
    ],
)
def test_mistakes_end_with_one_sentence(arguments, sentence, tmp_path, capsys):
    code, out, err = run(capsys, *(str(tmp_path / "out") if word == "OUT" else word for word in arguments))
    assert code == 2
    assert err.startswith(sentence)
    assert err.count("\n") == 1
    assert out == ""


def test_help_has_an_example(capsys):
    for verb in ("train", "evaluate", "write"):
        code, out, _ = run(capsys, verb, "--help")
        assert code == 0
        assert f"Example: scalegrad summarize {verb}" in " ".join(out.split())
