"""Bad lines and items of a large set: the first one stops the work, or all are left out and counted."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

_SHOWN = 3  # places that the sentence names for each problem
_STORED = 10_000  # places that are remembered for each problem


@dataclass
class Problems:
    """What to do with bad items, and what was wrong with them: with `skip` they are left out, else the first raises.

    >>> problems = Problems(skip=True)
    >>> problems.add("not JSON", "a.jsonl, line 7")
    >>> problems.add("not JSON", "a.jsonl, line 9", "Expecting value")
    >>> print(problems)
    2 left out: 2 × not JSON (a.jsonl, line 7; a.jsonl, line 9: Expecting value)
    >>> Problems().add("not JSON", "a.jsonl, line 7", "Expecting value")
    Traceback (most recent call last):
    ValueError: a.jsonl, line 7: not JSON (Expecting value); --skip-bad leaves such items out
    """

    skip: bool = False
    counts: Counter[str] = field(default_factory=Counter)  # problem -> items that have it
    places: dict[str, list[str]] = field(default_factory=dict)  # problem -> where it was seen, the first ones

    def add(self, what: str, place: str, detail: str = "") -> None:
        """Count that the item at `place` has the problem `what`, or raise."""
        if not self.skip:
            raise ValueError(f"{place}: {what}{f' ({detail})' if detail else ''}; --skip-bad leaves such items out")
        self.counts[what] += 1
        places = self.places.setdefault(what, [])
        if len(places) < _STORED:
            places.append(f"{place}: {detail}" if detail else place)

    def include(self, other: Problems) -> None:
        """Count the items of `other` as well."""
        self.counts += other.counts
        for what, places in other.places.items():
            self.places[what] = [*self.places.get(what, []), *places][:_STORED]

    @property
    def count(self) -> int:
        """How many items were left out."""
        return self.counts.total()

    def report(self) -> None:
        """Print the sentence on standard error, if any items were left out."""
        if self.count:
            print(self, file=sys.stderr)

    def __str__(self) -> str:
        """One sentence: how many items were left out, why, and the first places."""
        parts = []
        for what, count in self.counts.items():
            more = "; …" if count > _SHOWN else ""
            parts.append(f"{count:,} × {what} ({'; '.join(self.places[what][:_SHOWN])}{more})")
        return f"{self.count:,} left out: {', '.join(parts)}" if parts else "none left out"
