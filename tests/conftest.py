"""For every test: one thread, and the command lines as a user types them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

torch.set_num_threads(1)  # tensors here are tiny, and the workers of a parallel run share the cores

Command = Callable[..., tuple[object, str, str]]


def typed(main: Callable[[Sequence[str]], None], capsys: pytest.CaptureFixture[str]) -> Command:
    """A command line: exit code, standard output and standard error of `main` with these arguments."""

    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        printed = capsys.readouterr()
        return end.value.code, printed.out, printed.err

    return run


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """command("measure", "texts.txt"): `scalegrad measure texts.txt`."""
    from scalegrad.cli import main

    return typed(main, capsys)
