"""`scalegrad doctor`: is this machine ready?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from scalegrad.extras import MissingExtra
from scalegrad.options import AsJson
from scalegrad.runs.terminal import quiet_transformers, status

if TYPE_CHECKING:
    from rich.console import Console

    from scalegrad.lab.doctor import Finding

_TITLES = {"machine": "This machine", "extras": "Installed", "losses": "The losses", "shipped": "Shipped with it"}
_MARKS = {"ok": ("✓", "green"), "absent": ("–", "dim"), "wrong": ("✗", "bold red")}


def command(*, as_json: AsJson = False) -> int:
    """Look at this machine: versions, GPUs, extras, and whether the losses compute here what they should.

    What is not installed or not there is only said; exit code 1 means that something is wrong.

    Example: scalegrad doctor
    """
    from rich.console import Console

    from scalegrad.lab.doctor import findings

    with suppress(MissingExtra):
        quiet_transformers()
    with status("looking"):
        parts = list(findings())
    if as_json:
        print(json.dumps([asdict(part) for part in parts], ensure_ascii=False, indent=2))
    else:
        _print(parts, Console())
    return int(any(part.state == "wrong" for part in parts))


def _print(findings: Sequence[Finding], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    width = max(len(one.name) for one in findings)
    for part, title in _TITLES.items():
        table = Table.grid(padding=(0, 1))
        for wide in (1, 1, width, None):
            table.add_column(width=wide)
        for one in (one for one in findings if one.part == part):
            mark, style = _MARKS[one.state]
            table.add_row("", Text(mark, style), Text(one.name, style), Text(one.said))
        console.print(Text(title, "bold"))
        console.print(table)
    wrong = [one.name for one in findings if one.state == "wrong"]
    console.print(f"Wrong: {', '.join(wrong)}." if wrong else "Nothing is wrong.")
