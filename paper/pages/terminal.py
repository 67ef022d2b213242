"""A reproduction for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from paper.pages.result import Reproduction, Shown, where, with_notes_once
from scalegrad.results.comparison.page import examples
from scalegrad.results.comparison.terminal import print_notes, print_table
from scalegrad.results.measure.wording import printable


def print_reproduction(found: Reproduction, console: Console) -> None:
    """Print the title, what was found, every table with its notes, and texts where they are the matter."""
    told = f" ({where(found.shows)})" if found.shows else ""
    console.print(Rule(Text(printable(f"{found.title}{told}"), style="bold"), align="left"))
    for sentence in found.said:
        console.print(Text(printable(sentence)))
    for table in with_notes_once(found.tables):
        console.print()
        console.print(Text(printable(table.title), style="bold"))
        print_table(table.comparison, console)
        if table.texts:
            _print_texts(table, console)
        print_notes(table.comparison, console)
    console.print()


def _print_texts(table: Shown, console: Console) -> None:
    systems = [system for system in table.comparison.systems if system.samples]
    most = max((len(system.samples) for system in systems), default=0)
    for example in examples(table.comparison, most, systems):
        console.print()
        console.print(Text(f"{_shown(example.prefix)} …", style="italic"))
        for text in example.texts:
            line = Text(f"{printable(text.label)}: ", style="bold")
            for piece in text.pieces:
                line.append(_shown(piece.text), style="not bold red" if piece.again else "not bold")
            console.print(Padding(line, (0, 0, 0, 2)))
    if systems:
        console.print(Text("Red: runs of four words or more that were already said in the same text.", style="dim"))


def _shown(text: str) -> str:
    return printable(text.replace("\n", " ⏎ "))
