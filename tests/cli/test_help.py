"""What `--help` shows over all verbs, and how soon; the same option is the same thing in every verb."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scalegrad import cli

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "numpy", "pandas", "transformers", "matplotlib", "sqlalchemy", "fastapi")
VERBS = cli.verbs(cli.command(), "scalegrad")
SECONDS = 10.0  # of a busy machine; an idle one takes less than one


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("commands", ROOT / "docs_build" / "commands.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(*words):
    """(exit code, heavy libraries that were loaded, what was said, seconds) of a command in a process of its own."""
    code = (
        "import sys\nfrom scalegrad.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: code = end.code\n"
        f"print('loaded:', *[name for name in {HEAVY} if name in sys.modules])\nsys.exit(code)"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    heavy = done.stdout.splitlines()[-1].split()[1:]
    return done.returncode, heavy, done.stderr, time.perf_counter() - began


def test_there_are_all_verbs():
    assert len(VERBS) == 17
    assert {"scalegrad train", "scalegrad summarize write", "scalegrad caption describe"} <= set(VERBS)


@pytest.mark.parametrize("words", [("--help",), *((*name.split()[1:], "--help") for name in VERBS)], ids=" ".join)
def test_help_fits_and_has_an_example(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "Example: scalegrad " + " ".join(words[:-1]) in " ".join(text.split())


def test_every_option_says_what_it_is():
    for name, verb in VERBS.items():
        for argument in cli.arguments(verb):
            text = argument.parameter.help
            assert text, f"{name}: {argument.name} has no help"
            assert not text.startswith("Of "), f"{name}: {argument.name} starts in mid-sentence"


def test_an_option_is_of_one_type_everywhere(table):
    """A grid takes several of what one run takes one of, and a γ may be a schedule."""
    kinds = {}
    for verb in VERBS.values():
        for argument in cli.arguments(verb):
            kind = table.kind_of(argument).removesuffix(" …").split(",")[0]
            kinds.setdefault(table.name_of(argument), set()).add(kind)
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}
    assert kinds["--batch"] == {"number"}


def test_the_model_comes_first_in_every_verb_that_takes_one(table):
    for name, verb in VERBS.items():
        names = [table.name_of(argument) for argument in cli.arguments(verb)]
        assert "--model" not in names, name
        assert "MODEL" not in names[1:], name


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("train", "--help"), ("summarize", "--help")])
def test_help_loads_nothing_heavy(words):
    code, heavy, _, seconds = loaded(*words)
    assert (code, heavy) == (0, [])
    assert seconds < SECONDS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train base no-such.txt", "DATA: there is no file or folder no-such.txt"),
        ("train ./no-such wikitext-2", "MODEL: there is no file or folder ./no-such"),
        ("train T5 wikitext-2", "is an encoder-decoder; expected a causal language model"),
        ("evaluate T5 --chunks 1", "is an encoder-decoder; expected a causal language model"),
        ("evaluate base --corpus no-such", "--corpus: there is no 'no-such'"),
        ("evaluate base --new-tokens 0", "--new-tokens is 0; expected 1 or more"),
        ("complete ./no-such --prompts no-such.txt", "no-such.txt: there is no such file"),
        ("complete base --prompts - --strategy gredy", "'gredy'"),
        ("train base wikitext-2 --batch 0", "--batch must be a whole number from 1, not 0"),
        ("train base wikitext-2 --objective sg=2", "gamma must be a number in (0, 1], not 2.0"),
        ("train base wikitext-2 --bach 4", "there is no option --bach; did you mean --batch?"),
        ("train base wikitext-2 --batch four", "--batch"),
        ("sweep base wikitext-2", "--out is missing"),
        ("demo --gamma 2", "--gamma must be a number in (0, 1], not 2.0"),
        ("measure no-such.txt", "FILE: there is no no-such.txt"),
        ("report no-such", "FOLDER: there is no no-such"),
        ("summarize write base no-such.txt", "no-such.txt: there is no such file"),
        ("summarize train --data ./no-such --out o", "--data: there is no file or folder ./no-such"),
        ("caption describe ./no-such no-such.png", "IMAGE: there is no file no-such.png"),
        ("study analyse no-such", "no-such is not a study folder"),
    ],
)
def test_a_mistake_is_said_before_a_library_is_loaded(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "T5").mkdir()
    (tmp_path / "T5" / "config.json").write_text('{"model_type": "t5", "is_encoder_decoder": true}')
    code, heavy, error, seconds = loaded(*words.replace("T5", "./T5").split())
    assert code == 2
    assert said in error
    assert error.startswith("scalegrad: ")
    assert error.count("\n") == 1
    assert not {"torch", "transformers", "pandas"} & {*heavy}
    assert seconds < SECONDS


def test_a_verb_or_an_argument_too_many_is_named(command):
    assert command("trian")[2].startswith('scalegrad: Unknown command "trian". Did you mean "train"?')
    assert command("evaluate", "base", "twice") == (2, "", "scalegrad: 'twice' is one argument too many\n")


def test_failed_jobs_end_with_exit_code_1(command, monkeypatch):
    from scalegrad.lab import sweep
    from scalegrad.runs import JobsFailed

    def fails(*_, **__):
        raise JobsFailed({"mle-seed-0": ValueError("no room")}, 3)

    monkeypatch.setattr(sweep, "run_sweep", fails)
    code, out, error = command("demo")
    assert (code, out) == (1, "")
    assert error.startswith("scalegrad: 1 of 3 jobs failed, the others are done: mle-seed-0: no room")
    assert error.count("\n") == 1
