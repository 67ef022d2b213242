"""`scalegrad bench NAME`: speed and memory on this machine, beside what others offer."""

from __future__ import annotations

from collections.abc import Callable

import typer

from benchmarks import BENCHMARKS
from benchmarks.__main__ import run

app = typer.Typer(
    help="Speed and memory on this machine, beside what others offer.\n\nExample: scalegrad bench gpu --quick",
    no_args_is_help=True,
)

# The benchmark reads its own arguments, --help among them.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _verb(name: str) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        run(name, context.args)

    return command


for _name, _help in BENCHMARKS.items():
    app.command(_name, help=_help, context_settings=_PASS_ON)(_verb(_name))
