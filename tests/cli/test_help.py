"""What `--help` shows, over all verbs."""

import pytest
import typer

from scalegrad import cli


def commands(one, path=()):
    yield path, one
    for name, under in getattr(one, "commands", {}).items():
        yield from commands(under, (*path, name))


def test_an_option_without_a_value_shows_none(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["reproduce", "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "--only-done" in out
    assert "<bool>" not in out
    assert "<int>" in out  # of --seeds: options that take a value still say which


def test_every_option_says_what_it_is():
    found = list(commands(cli.command()))
    assert len(found) > 20
    for path, one in found:
        for option in one.get_params(typer.Context(one)):
            text = getattr(option, "help", None)
            assert text, f"scalegrad {' '.join(path)}: {option.name} has no help"
            assert not text.startswith("Of "), f"scalegrad {' '.join(path)}: {option.name} starts in mid-sentence"
