"""A comparison in words, for a terminal and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalegrad.counts import counted
from scalegrad.results.comparison.columns import (
    best,
    column,
    further_columns,
    legend,
    main_columns,
    written,
    written_spread,
)
from scalegrad.results.comparison.systems import Comparison, System
from scalegrad.results.fitting_table import print_fitting
from scalegrad.results.measure.wording import printable

_STYLES = {"human": "green", "paper": "dim", "decoded": "", "trained": ""}


def headline(comparison: Comparison) -> str:
    """The first thing to say.

    >>> strengths = {"mle": (None, 0.66), "sg": (0.2, 0.44), "human": (None, 0.33)}
    >>> systems = [System(objective=o, strength=s, figures={"rep_1": rep}) for o, (s, rep) in strengths.items()]
    >>> headline(Comparison(systems))
    'Of 100 words, SG γ=0.2 repeats 44 and MLE 66. People repeat 33.'
    """
    base, favourite, human = comparison.baseline, comparison.favourite, comparison.human
    if base is None:
        return "Nothing to compare yet"
    systems = [system for system in (favourite, base) if system is not None and "rep_1" in system.figures]
    if systems:
        first, *others = systems
        text = f"Of 100 words, {first.label} repeats {_percent(first, 'rep_1')}"
        text += "".join(f" and {other.label} {_percent(other, 'rep_1')}" for other in others) + "."
        return text + (f" People repeat {_percent(human, 'rep_1')}." if human and "rep_1" in human.figures else "")
    return _best_sentence(comparison) or f"{counted(len(comparison.of_kind('trained')), 'system')} compared"


def _best_sentence(comparison: Comparison) -> str:
    names = [name for group in main_columns(comparison.systems).values() for name in group]
    trained = comparison.of_kind("trained", "decoded")
    for name in names:
        if column(name).better != "high":
            continue
        ranked = sorted((s for s in trained if name in s.figures), key=lambda s: -s.figures[name])
        if len(ranked) > 1:
            first, *others = (f"{system.label} {written(name, system.figures[name])}" for system in ranked[:3])
            return f"{column(name).title}: {first}, then {', '.join(others)}."
    return ""


def _percent(system: System, name: str) -> str:
    return f"{100 * system.figures[name]:.0f}"


def print_comparison(comparison: Comparison, console: Console, said: Sequence[str] = ()) -> None:
    """Print the headline, the table and the notes; `said` are sentences to put under the headline."""
    console.print(Text(printable(headline(comparison)), style="bold"))
    for sentence in said:
        console.print(Text(printable(sentence)))
    print_table(comparison, console)
    print_notes(comparison, console)


def print_figures(comparison: Comparison, console: Console) -> None:
    """Print one model's table, what the main table leaves out, and the notes: no sentence, for nothing is compared."""
    console.print(Text(printable(comparison.corpus), style="bold"))
    print_table(comparison, console)
    models = comparison.of_kind("trained")
    rest = [
        f"{column(n).title} {written(n, s.figures[n])}" for s in models for n in further_columns([s]) if n in s.figures
    ]
    if rest:
        console.print(Text(" · ".join(rest), style="dim"))
    print_notes(comparison, console)


def print_notes(comparison: Comparison, console: Console) -> None:
    """What does not compare, a line each."""
    for note in comparison.notes:
        console.print(Text(f"• {printable(note)}", style="yellow"))


def print_table(comparison: Comparison, console: Console) -> None:
    """The table: a row a system where that fits, else a column a system."""
    systems = list(comparison.systems)
    names = [name for group in main_columns(systems).values() for name in group]
    if names:
        console.print()
        print_fitting(console, _wide(comparison, systems, names), _upright(comparison, systems, names))
        if below := legend(comparison, names):
            console.print(Text(below, style="dim"))


def markdown(comparison: Comparison, said: Sequence[str] = ()) -> str:
    """Headline, `said` under it, table, what its signs mean, and notes as Markdown; best figures bold."""
    lines = [f"**{escaped(headline(comparison))}**", ""]
    if said:
        lines += [*map(escaped, said), ""]
    names = [name for group in main_columns(comparison.systems).values() for name in group]
    return "\n".join([*lines, markdown_table(comparison, legend(comparison, names))])


def markdown_table(comparison: Comparison, below: str = "") -> str:
    """Table, the sentences `below`, and notes as Markdown; best figures bold."""
    systems = list(comparison.systems)
    names = [name for group in main_columns(systems).values() for name in group]
    marked = {name: best(comparison, name) for name in names}
    lines = [f"| | {' | '.join(escaped(column(name).title) for name in names)} |", f"|---|{'---:|' * len(names)}"]
    for at, system in enumerate(systems):
        cells = [_plain(system, name) for name in names]
        cells = [f"**{cell}**" if at in marked[name] else cell for name, cell in zip(names, cells, strict=True)]
        lines.append(f"| {escaped(system.label)} | {' | '.join(cells)} |")
    notes = [f"- {escaped(note)}" for note in comparison.notes]
    return "\n".join([*lines, *(["", escaped(below)] if below else []), *([""] if notes else []), *notes, ""])


def _wide(comparison: Comparison, systems: Sequence[System], names: Sequence[str]) -> Table:
    table = _empty()
    for name in names:
        table.add_column(column(name).title, justify="right", no_wrap=True)
    marked = {name: best(comparison, name) for name in names}
    for at, system in enumerate(systems):
        cells = [_cell(system, name, at in marked[name], "\n") for name in names]
        table.add_row(Text(printable(system.label)), *cells, style=_STYLES[system.kind])
    return table


def _upright(comparison: Comparison, systems: Sequence[System], names: Sequence[str]) -> Table:
    table = _empty()
    for system in systems:
        table.add_column(Text(printable(system.label)), justify="right", style=_STYLES[system.kind])
    for name in names:
        marked = best(comparison, name)
        cells = [_cell(system, name, at in marked, " ") for at, system in enumerate(systems)]
        table.add_row(column(name).title, *cells)
    return table


def _empty() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    return table


def _cell(system: System, name: str, is_best: bool, between: str) -> Text:
    text = Text(written(name, system.figures.get(name)), style="bold" if is_best else "")
    if beside := written_spread(system, name):
        text.append(f"{between}{beside.replace(' ', between)}", style="dim not bold")
    return text


def _plain(system: System, name: str) -> str:
    spread = written_spread(system, name)
    return written(name, system.figures.get(name)) + (f" {spread}" if spread else "")


def escaped(text: str) -> str:
    """`text` as Markdown shows it: no sign of it is read as markup.

    >>> print(escaped("R&D &copy; <unk> of *it*"))
    R&D &amp;copy; &lt;unk\\> of \\*it\\*
    """
    shown = re.sub(r"&(?=#?\w+;)", "&amp;", printable(text)).replace("<", "&lt;")  # not all know a backslash before <
    for sign in "\\`*_[]>|#":
        shown = shown.replace(sign, f"\\{sign}")
    return shown
