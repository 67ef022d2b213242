"""The `scalegrad` command: one thin file a verb, each of which parses, calls the library and prints."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from scalegrad._version import __version__
from scalegrad.extras import MissingExtra, need

# Verbs in the order `scalegrad --help` lists them. The module of each has an `app` (a group) or a `command`.
# A verb that is built on a task or on the study is missing when that folder is.
OPEN_ENDED = "scalegrad.tasks.open_ended"
VERBS: dict[str, tuple[str, ...]] = {  # the folder that a verb is built on, if it can be deleted, and its module
    "demo": (OPEN_ENDED, "scalegrad.cli.demo"),
    "train": (OPEN_ENDED, "scalegrad.tasks.open_ended.train_command"),
    "evaluate": (OPEN_ENDED, "scalegrad.tasks.open_ended.evaluate_command"),
    "report": ("scalegrad.cli.report",),
    "sweep": (OPEN_ENDED, "scalegrad.cli.sweep"),
    "summarize": ("scalegrad.tasks.summarization", "scalegrad.tasks.summarization.command"),
    "caption": ("scalegrad.tasks.captioning", "scalegrad.tasks.captioning.command"),
    "complete": ("scalegrad.cli.complete",),
    "measure": ("scalegrad.cli.measure",),
    "study": ("scalegrad.study", "scalegrad.study.command"),
    "doctor": ("scalegrad.cli.doctor",),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line.

    What only the user can put right (a bad value, a missing file, a missing extra) ends with exit code 2 and one
    sentence; `SCALEGRAD_TRACEBACK=1` shows where it came from. Of several jobs some of which failed, exit code 1.
    """
    try:
        command()(args=None if argv is None else list(argv), prog_name="scalegrad")
    except (ValueError, OSError, MissingExtra) as mistake:
        if os.environ.get("SCALEGRAD_TRACEBACK"):
            raise
        print(f"scalegrad: {mistake}", file=sys.stderr)
        sys.exit(2)
    except RuntimeError as error:
        from scalegrad.runs.jobs import JobsFailed

        if not isinstance(error, JobsFailed) or os.environ.get("SCALEGRAD_TRACEBACK"):
            raise
        print(f"scalegrad: {error}", file=sys.stderr)
        sys.exit(1)


def command() -> Any:
    """The whole command; its help shows no value after an option that takes none."""
    typer = need("typer", extra="cli")
    whole = typer.main.get_command(_app())
    waiting = [whole]
    while waiting:
        one = waiting.pop()
        waiting.extend(getattr(one, "commands", {}).values())
        for option in one.get_params(typer.Context(one)):  # with --help, which is made here and kept
            if getattr(option, "is_flag", False):
                option.metavar = ""
    return whole


def _app() -> Any:
    typer = need("typer", extra="cli")
    app = typer.Typer(
        help="Train text generators that repeat themselves less, decode them, and measure how much they do.\n\n"
        "Example: scalegrad demo --out demo",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )

    def version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"scalegrad {__version__}")
            raise typer.Exit

    @app.callback()  # type: ignore[untyped-decorator]
    def root(
        version: bool = typer.Option(
            False, "--version", callback=version, is_eager=True, help="Print the version and exit."
        ),
    ) -> None:
        """Nothing to do before the verb."""

    for verb, places in VERBS.items():
        module = _load(*places)
        if module is None:
            continue
        if hasattr(module, "app"):
            app.add_typer(module.app, name=verb)
        else:
            app.command(verb)(module.command)
    return app


def _load(*places: str) -> ModuleType | None:
    """The last of these modules; None if the first of several, a folder that may be deleted, is not there."""
    folder, *_, module = (places[0], *places)
    try:
        importlib.import_module(folder)
    except ModuleNotFoundError as missing:
        if len(places) == 1 or missing.name != folder:
            raise
        return None
    return importlib.import_module(module)
