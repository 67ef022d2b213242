"""The command line as a user types it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scalegrad.cli import main


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str, str]]:
    """command("show", "gradients"): exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return run
