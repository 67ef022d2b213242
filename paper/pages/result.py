"""A reproduction as plain data: what one experiment gave, and what of the paper it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from scalegrad.results.comparison import Comparison, Sample, System

FORMAT = 1


class Shown(NamedTuple):
    """A table: this machine's rows, people's and the paper's (`System.kind` says which is which).

    `texts`: the table is about what the systems wrote, so all of it is shown.
    """

    title: str
    comparison: Comparison
    texts: bool = False


class Picture(NamedTuple):
    """A plot that was drawn: its name, what stands below it, and itself as an `<svg>` element."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Reproduction:
    """What one experiment gave; `shows` says of what in the paper: "table 1", "figure 2"."""

    name: str
    title: str
    shows: Sequence[str]
    scale: str
    tables: Sequence[Shown] = ()
    pictures: Sequence[Picture] = ()
    said: Sequence[str] = ()
    made: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values; of the pictures their names and captions."""
        return {
            "format": FORMAT,
            "name": self.name,
            "title": self.title,
            "shows": list(self.shows),
            "scale": self.scale,
            "said": list(self.said),
            "tables": [_as_dict(table) for table in self.tables],
            "plots": [{"name": picture.name, "caption": picture.caption} for picture in self.pictures],
            "made": dict(self.made),
        }

    @classmethod
    def from_dict(cls, known: Mapping[str, Any], svgs: Mapping[str, str]) -> Reproduction:
        """What `as_dict` gave, with the pictures by their names."""
        if known["format"] != FORMAT:
            raise ValueError(f"its format is {known['format']!r}, not {FORMAT}")
        kept = {name: known[name] for name in ("name", "title", "shows", "scale", "said", "made")}
        pictures = [Picture(plot["name"], plot["caption"], svgs[plot["name"]]) for plot in known["plots"]]
        return cls(**kept, tables=[_from_dict(table) for table in known["tables"]], pictures=pictures)


def with_notes_once(tables: Sequence[Shown]) -> list[Shown]:
    """The tables to be shown one below another: a note that an earlier one has is not said again."""
    told: set[str] = set()
    found = []
    for table in tables:
        notes = [note for note in table.comparison.notes if note not in told]
        told.update(notes)
        found.append(table._replace(comparison=replace(table.comparison, notes=notes)))
    return found


def where(shows: Sequence[str]) -> str:
    """What of the paper is shown, in words.

    >>> where(["table 1", "table 10", "figure 2"]), where(["table 3"]), where([])
    ('tables 1 and 10, figure 2', 'table 3', '')
    >>> where(["table 5", "table 23", "table 24", "table 25"])
    'tables 5 and 23–25'
    """
    told = []
    for kind in ("table", "figure"):
        numbers = sorted(int(name.split()[1]) for name in shows if name.startswith(kind))
        if numbers:
            *first, last = _ranges(numbers)
            plural = "s" if len(numbers) > 1 else ""
            told.append(f"{kind}{plural} {', '.join(first)}{' and ' if first else ''}{last}")
    return ", ".join(told)


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Three or more in a row as one."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [text for run in runs for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))]


def _as_dict(table: Shown) -> dict[str, Any]:
    comparison = table.comparison
    pictures = {s.prefix: s.picture for system in comparison.systems for s in system.samples if s.picture}
    rows = [
        system.as_dict() | ({"texts": {s.prefix: s.continuation for s in system.samples}} if system.samples else {})
        for system in comparison.systems
    ]
    told = {"title": table.title, "corpus": comparison.corpus, "rows": rows, "notes": list(comparison.notes)}
    return told | {"chosen": comparison.chosen, "texts": table.texts} | ({"pictures": pictures} if pictures else {})


def _from_dict(known: Mapping[str, Any]) -> Shown:
    systems = [_row(row, known.get("pictures", {})) for row in known["rows"]]
    return Shown(known["title"], Comparison(systems, known["corpus"], known["notes"], known["chosen"]), known["texts"])


def _row(known: Mapping[str, Any], pictures: Mapping[str, str]) -> System:
    samples = [Sample(prefix, text, pictures.get(prefix, "")) for prefix, text in known.get("texts", {}).items()]
    intervals = {name: (low, high) for name, (low, high) in known.get("intervals", {}).items()}
    kept = {name: value for name, value in known.items() if name not in ("texts", "intervals")}
    return System(**kept, intervals=intervals, samples=samples)
