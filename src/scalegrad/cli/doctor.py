"""`scalegrad doctor`: is this machine ready?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalegrad.extras import MissingExtra
from scalegrad.runs.terminal import quiet_transformers, status

if TYPE_CHECKING:
    from scalegrad.lab.doctor import Finding

AsJson = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]

_TITLES = {"machine": "This machine", "extras": "Installed", "losses": "The losses", "shipped": "Shipped with it"}
_MARKS = {"ok": ("✓", "green"), "absent": ("–", "dim"), "wrong": ("✗", "bold red")}


def command(as_json: AsJson = False) -> None:
    """Look at this machine: versions, GPUs, extras, and whether the losses compute here what they should.

    What is not installed or not there is only said; exit code 1 means that something is wrong.

    Example: scalegrad doctor
    """
    from scalegrad.lab.doctor import findings

    with suppress(MissingExtra):
        quiet_transformers()
    with status("looking"):
        found = list(findings())
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
    else:
        _print(found, Console())
    if any(one.state == "wrong" for one in found):
        raise typer.Exit(1)


def _print(found: Sequence[Finding], console: Console) -> None:
    width = max(len(one.name) for one in found)
    for part, title in _TITLES.items():
        table = Table.grid(padding=(0, 1))
        for wide in (1, 1, width, None):
            table.add_column(width=wide)
        for one in (one for one in found if one.part == part):
            mark, style = _MARKS[one.state]
            table.add_row("", Text(mark, style), Text(one.name, style), Text(one.said))
        console.print(Text(title, "bold"))
        console.print(table)
    wrong = [one.name for one in found if one.state == "wrong"]
    console.print(f"Wrong: {', '.join(wrong)}." if wrong else "Nothing is wrong.")
