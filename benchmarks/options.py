"""The options that the benchmarks share. Annotations are types here, not text: other modules inherit the fields."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How often each is timed, and what becomes of the figures."""

    rounds: int = 7
    """How often each is timed."""
    out: Path | None = None
    """Where the CSV goes (default: benchmarks/NAME.csv, NAME with the device where that matters)."""
    json: bool = False
    """Print JSON in place of tables."""

    def __post_init__(self) -> None:
        check_counts(self, rounds=1)


def check_counts(options: Any, **least: int) -> None:
    """A ValueError for the first of these fields, a number or several, that is less than it may be.

    >>> check_counts(Timing(rounds=2), rounds=1)
    """
    for name, bound in least.items():
        value = getattr(options, name)
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and number < bound:
                raise ValueError(f"{name} must be a whole number of at least {bound}, not {number}")
