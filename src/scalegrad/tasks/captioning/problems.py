"""What is wrong with single items of a large set: named, counted, and the work stops or goes on as the user chose."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Problems:
    """Collects what is wrong with items; with `skip` they are left out, without it the first one raises.

    >>> problems = Problems(skip=True)
    >>> problems.add("no features", "7.npy")
    >>> problems.add("no features", "9.npy")
    >>> print(problems)
    2 with no features (7.npy, 9.npy)
    >>> Problems(skip=False).add("no features", "7.npy")
    Traceback (most recent call last):
    ValueError: 7.npy: no features (--skip-bad leaves such items out)
    """

    skip: bool = False
    items: dict[str, list[str]] = field(default_factory=dict)

    def add(self, what: str, item: str) -> None:
        """Note that `item` has this problem, or raise."""
        if not self.skip:
            raise ValueError(f"{item}: {what} (--skip-bad leaves such items out)")
        self.items.setdefault(what, []).append(item)

    @property
    def count(self) -> int:
        """How many items were left out."""
        return sum(map(len, self.items.values()))

    def as_dict(self) -> dict[str, list[str]]:
        """Every item by what is wrong with it, for a report."""
        return {what: list(items) for what, items in self.items.items()}

    def __str__(self) -> str:
        """One line: how many of what, with the first three names."""
        told = []
        for what, items in self.items.items():
            some = ", ".join(items[:3]) + (", …" if len(items) > 3 else "")
            told.append(f"{len(items):,} with {what} ({some})")
        return "; ".join(told)
