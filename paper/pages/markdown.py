"""A reproduction as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paper.pages.result import Reproduction, Shown, where, with_notes_once
from scalegrad.results.comparison.columns import BOLD
from scalegrad.results.comparison.page import examples
from scalegrad.results.comparison.spans import Piece
from scalegrad.results.comparison.terminal import escaped, markdown_table


def markdown(found: Reproduction) -> str:
    """Title, notes on all, tables with their own, texts where they are the matter, pictures, and how it was made."""
    told = f" · {where(found.shows)} of the paper" if found.shows else ""
    lines = [f"# {escaped(found.title)}", "", f"`python -m paper {found.name} --scale {found.scale}`{told}", ""]
    lines += [f"- {escaped(sentence)}" for sentence in found.said]
    lines += ["", BOLD] if found.tables else []
    for table in with_notes_once(found.tables):
        lines += ["", f"## {escaped(table.title)}", "", markdown_table(table.comparison)]
        if table.texts:
            lines += _texts(table)
    for picture in found.pictures:
        lines += ["", f"![{escaped(picture.caption)}](plots/{picture.name}.png)", "", escaped(picture.caption)]
    about = how_made(found.made)
    if about:
        lines += [
            "",
            "## How it was made",
            "",
            *(f"- {escaped(key)}: {escaped(value)}" for key, value in about.items()),
        ]
    return "\n".join(lines).rstrip() + "\n"


def how_made(made: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings with a line for each value that says something.

    >>> how_made({"model": "base", "settings": {"seeds": [0, 1], "note": None}})
    {'model': 'base', 'settings.seeds': '0, 1'}
    """
    told: dict[str, str] = {}
    for key, value in made.items():
        if isinstance(value, Mapping):
            told |= how_made(value, f"{prefix}{key}.")
        elif value not in (None, "", [], ()):
            told[f"{prefix}{key}"] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return told


def _texts(table: Shown) -> list[str]:
    lines = []
    systems = [system for system in table.comparison.systems if system.samples]
    most = max((len(system.samples) for system in systems), default=0)
    for example in examples(table.comparison, most, systems):
        lines += [f"> {_one_line(example.prefix)} …", ""]
        lines += [f"- **{escaped(text.label)}**: {''.join(map(_marked, text.pieces))}" for text in example.texts]
        lines.append("")
    return [*lines, "Bold: runs of four words or more that were already said in the same text.", ""] if lines else []


def _marked(piece: Piece) -> str:
    """Repeated words bold; the spaces around them stay outside, or Markdown would not see the mark."""
    text = _one_line(piece.text)
    return f"**{text}**" if piece.again else text


def _one_line(text: str) -> str:
    return escaped(text.replace("\n", " ⏎ "))
