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
        cli.main(["sweep", "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "--overwrite" in out
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


def test_every_command_shows_an_example_of_itself():
    for path, one in commands(cli.command()):
        assert f"Example: {' '.join(('scalegrad', *path))}" in one.help, path


def test_usage_says_once_that_an_argument_may_be_repeated(capsys):
    """The library adds brackets and dots to a name: names have none of their own."""
    for path, one in commands(cli.command()):
        for argument in one.get_params(typer.Context(one)):
            if argument.param_type_name == "argument":
                assert argument.metavar.isupper(), f"scalegrad {' '.join(path)}: {argument.metavar}"
                assert argument.metavar.isalpha(), f"scalegrad {' '.join(path)}: {argument.metavar}"


def test_steps_have_one_name_in_all_commands():
    for path, one in commands(cli.command()):
        for option in one.get_params(typer.Context(one)):
            if "--steps" in option.opts:
                assert "--max-steps" in option.opts, path  # as `scalegrad train` calls them
