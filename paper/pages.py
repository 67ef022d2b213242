"""What an experiment gave: in a folder, on a terminal, and as part of one HTML page.

NAME/results.jsonl      the rows behind the tables, the paper's among them
NAME/texts.jsonl        texts of the systems, a few of each table; all where a table is about texts
NAME/plots/             the pictures
NAME/part.html          its part of the page
NAME/environment.json   what it is and how it was made; written last
report.html             every part there is
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from paper.outcome import Experiment, Outcome, Shown
from scalegrad.results.comparison import Comparison
from scalegrad.results.comparison.page import Example, examples, lay_out, meanings, render, spread_prefixes
from scalegrad.results.comparison.terminal import print_notes, print_table
from scalegrad.results.figure import inline_svg, save_figure
from scalegrad.results.measure.wording import printable
from scalegrad.runs import check_writable_folder, flat_config, write_json, write_lines, write_text

TITLE = "The paper, done again"
TEXTS = 3  # shown of a table that is not about texts


@dataclass(frozen=True)
class Part:
    """An experiment and what it gave, as it is shown: few texts, and each note once."""

    experiment: Experiment
    scale: str
    outcome: Outcome

    @property
    def tables(self) -> list[Shown]:
        """The tables; a note that an earlier one has is not shown again."""
        seen: set[str] = set()
        tables = []
        for table in self.outcome.tables:
            notes = [note for note in table.comparison.notes if note not in seen]
            seen.update(notes)
            tables.append(
                table._replace(comparison=_with_few_texts(replace(table.comparison, notes=notes), table.texts))
            )
        return tables

    @property
    def made(self) -> dict[str, str]:
        """Settings with a line for each value that says something."""
        known = {key: value for key, value in flat_config(self.outcome.made).items() if value not in (None, "", [], ())}
        return {key: ", ".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for key, v in known.items()}

    def about(self) -> dict[str, Any]:
        """What environment.json says; its experiments are how `paper.claims` finds the rows."""
        laid = [lay_out(table.comparison) for table in self.tables]
        columns = dict.fromkeys(chain.from_iterable((*one.names, *one.further) for one in laid))
        return {
            "experiments": [self.experiment.name],
            "title": self.experiment.title,
            "shows": list(self.experiment.shows),
            "scale": self.scale,
            "notes": list(self.outcome.notes),
            "columns": list(columns),
            "plots": [{"name": plot.name, "caption": plot.caption} for plot in self.outcome.plots],
            "made": dict(self.outcome.made),
        }


def write_part(part: Part, folder: Path) -> None:
    """Write everything of a part into its folder, each file whole or not at all."""
    folder = check_writable_folder(folder, "out")
    pictures = []
    if part.outcome.plots:
        check_writable_folder(folder / "plots", "out")
    for plot in part.outcome.plots:
        svg = inline_svg(plot.figure, f"{part.experiment.name}-{plot.name}", plot.caption)
        save_figure(plot.figure, folder / "plots" / f"{plot.name}.png")
        write_text(folder / "plots" / f"{plot.name}.svg", svg)
        pictures.append((plot.caption, svg))
    tables = [(table, lay_out(table.comparison), examples_of(table)) for table in part.tables]
    html = render("part.html.j2", Path(__file__).parent, part=part, tables=tables, pictures=pictures,
                  where=where(part.experiment.shows))  # fmt: skip
    write_text(folder / "part.html", html)
    write_lines(folder / "results.jsonl", [row.as_dict() for row in part.outcome.rows])
    if texts := _texts(part):
        write_lines(folder / "texts.jsonl", texts)
    write_json(folder / "environment.json", part.about())  # last: where it is, everything is there


def write_page(out: Path, names: Sequence[str]) -> Path:
    """OUT/report.html: the parts of `names` that OUT holds, in that order, on a page that needs nothing else."""
    folders = [out / name for name in names if (out / name / "environment.json").is_file()]
    known = [json.loads((folder / "environment.json").read_text(encoding="utf-8")) for folder in folders]
    parts = [
        (folder.name, about["title"], where(about["shows"]), (folder / "part.html").read_text(encoding="utf-8"))
        for folder, about in zip(folders, known, strict=True)
    ]
    html = render(
        "page.html.j2",
        Path(__file__).parent,
        title=TITLE,
        parts=parts,
        scales=list(dict.fromkeys(about["scale"] for about in known)),
        meanings=meanings(name for about in known for name in about["columns"]),
    )
    write_text(out / "report.html", html)
    return out / "report.html"


def print_part(part: Part, console: Console) -> None:
    """Print the title, notes, every table with its own, and texts where they are the matter."""
    of_paper = f" ({where(part.experiment.shows)})" if part.experiment.shows else ""
    console.print(Rule(Text(printable(f"{part.experiment.title}{of_paper}"), style="bold"), align="left"))
    for note in part.outcome.notes:
        console.print(Text(printable(note)))
    for table in part.tables:
        console.print()
        console.print(Text(printable(table.title), style="bold"))
        print_table(table.comparison, console)
        for example in examples_of(table) if table.texts else ():
            _print_example(example, console)
        print_notes(table.comparison, console)
    console.print()


def as_dict(part: Part) -> dict[str, Any]:
    """As plain JSON values: what it is, its rows, and the figures of each table."""
    tables = [
        {"title": table.title, "systems": {s.label: dict(s.figures) for s in table.comparison.systems}}
        for table in part.tables
    ]
    rows = [row.as_dict() for row in part.outcome.rows]
    return {"name": part.experiment.name, **part.about(), "tables": tables, "rows": rows}


def examples_of(table: Shown) -> list[Example]:
    """Beginnings, and how each system with texts continues them."""
    systems = [system for system in table.comparison.systems if system.samples]
    return examples(table.comparison, max((len(system.samples) for system in systems), default=0), systems)


def where(shows: Sequence[str]) -> str:
    """What of the paper is shown, in words.

    >>> where(["table 1", "table 10", "figure 2"]), where(["table 3"]), where([])
    ('tables 1 and 10, figure 2', 'table 3', '')
    >>> where(["table 5", "table 23", "table 24", "table 25"])
    'tables 5 and 23–25'
    """
    words = []
    for kind in ("table", "figure"):
        numbers = sorted(int(number) for name, number in map(str.split, shows) if name == kind)
        if numbers:
            *first, last = _ranges(numbers)
            plural = "s" if len(numbers) > 1 else ""
            words.append(f"{kind}{plural} {', '.join(first)}{' and ' if first else ''}{last}")
    return ", ".join(words)


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Three or more in a row as one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [text for run in runs for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))]


def _with_few_texts(comparison: Comparison, about_texts: bool) -> Comparison:
    """With texts of the systems that matter after a few beginnings, evenly spread; with all where it is about texts."""
    shown = [s for s in (comparison.systems if about_texts else comparison.spoken_of) if s.samples]
    most = max((len(system.samples) for system in shown), default=0) if about_texts else TEXTS
    prefixes, keys = set(spread_prefixes(shown, most)), {system.key for system in shown}
    return replace(
        comparison,
        systems=[
            replace(s, samples=[one for one in s.samples if one.prefix in prefixes] if s.key in keys else ())
            for s in comparison.systems
        ],
    )


def _texts(part: Part) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for table in part.tables:
        for system in table.comparison.systems:
            names = ("objective", "strength", "decoding", "penalty")
            about = {name: value for name in names if (value := getattr(system, name)) not in (None, "")}
            of_paper = {"run": "paper"} if system.kind == "paper" else {}
            records += [
                {**of_paper, **about, "prefix": sample.prefix, "continuation": sample.continuation}
                for sample in system.samples
            ]
    return records


def _print_example(example: Example, console: Console) -> None:
    console.print()
    console.print(Text(f"{printable(_one_line(example.prefix))} …", style="italic"))
    for text in example.texts:
        line = Text(f"{printable(text.label)}: ", style="bold")
        for piece in text.pieces:
            line.append(printable(_one_line(piece.text)), style="not bold red" if piece.again else "not bold")
        console.print(Padding(line, (0, 0, 0, 2)))


def _one_line(text: str) -> str:
    return text.replace("\n", " ⏎ ")
