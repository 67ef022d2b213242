"""Figures that carry their standard errors through arithmetic, and comparisons that count beyond a margin."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# Student's t of 95%, both sides, for 1, 2, 3, … degrees of freedom; the last serves all above.
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NORMAL_95 = 1.960

Source = tuple[str, str, int]  # a row, a column and the row's seeds, 0 where seeds play no part


@dataclass(frozen=True, eq=False)
class Figure:
    """A number, and what it becomes where one source alone moves up or down by its standard error (NaN: nothing)."""

    text: str
    value: float
    moved: Mapping[Source, tuple[float, float]] = field(default_factory=dict)

    @property
    def margin(self) -> float:
        """Half the width of the 95% interval: what each source changes adds up as independent changes do.

        The degrees of freedom are the seeds of the rows that matter, less one for each row.
        """
        changes = {
            source: max((abs(value - self.value) for value in ends if not math.isnan(value)), default=0.0)
            for source, ends in self.moved.items()
        }
        freedom = sum({row: n - 1 for (row, _, n), change in changes.items() if change and n > 1}.values())
        return math.hypot(*changes.values()) * (T_95[min(freedom, len(T_95)) - 1] if freedom else NORMAL_95)

    def __sub__(self, other: Figure | float) -> Figure:
        return computed("({} - {})", operator.sub, self, other)

    def __rsub__(self, other: float) -> Figure:
        return computed("({} - {})", operator.sub, other, self)

    def __rmul__(self, other: Figure | float) -> Figure:
        return computed("({} * {})", operator.mul, other, self)

    __mul__ = __rmul__

    def __truediv__(self, other: Figure | float) -> Figure:
        return computed("({} / {})", operator.truediv, self, other)

    def __abs__(self) -> Figure:
        return computed("abs{}" if self.text.startswith("(") else "abs({})", abs, self)

    def __lt__(self, other: Figure | float) -> Check:
        return Check.of(self, other, -1)

    def __gt__(self, other: Figure | float) -> Check:
        return Check.of(self, other, 1)


def computed(text: str, function: Callable[..., float], *numbers: Figure | float) -> Figure:
    """What a function gives for figures and plain numbers; `text` has a {} for each."""
    figures = [one if isinstance(one, Figure) else Figure(f"{one:g}", one) for one in numbers]

    def moved(source: Source, end: int) -> float:
        return function(*(one.moved[source][end] if source in one.moved else one.value for one in figures))

    sources = dict.fromkeys(source for one in figures for source in one.moved)
    value = function(*(one.value for one in figures))
    return Figure(text.format(*(one.text for one in figures)), value, {s: (moved(s, 0), moved(s, 1)) for s in sources})


def extreme(function: Callable[..., float], *figures: Figure) -> Figure:
    """The `min` or the `max` of several figures."""
    return computed(f"{function.__name__}({', '.join('{}' for _ in figures)})", function, *figures)


@dataclass(frozen=True)
class Check:
    """One comparison: what it says, both sides, and half the width of the 95% interval of their difference."""

    text: str
    left: float
    right: float
    sign: int  # +1 where the claim is left > right
    spread: float
    seeds: int  # the fewest behind a figure in it; 0 where none has seeds
    premise: bool = False  # without it the claim does not hold, whatever its other comparisons give

    @classmethod
    def of(cls, left: Figure, right: Figure | float, sign: int) -> Check:
        """A comparison of a figure with another or with a number."""
        both = computed(f"{{}} {'>' if sign > 0 else '<'} {{}}", operator.sub, left, right)
        value = right.value if isinstance(right, Figure) else right
        seeds = min((seeds for _, _, seeds in both.moved if seeds), default=0)
        return cls(both.text, left.value, value, sign, both.margin, seeds)

    @property
    def holds(self) -> bool:
        """Is the difference as claimed, and larger than the margin?"""
        return self.sign * (self.left - self.right) > self.spread

    @property
    def reversed(self) -> bool:
        """Is the difference the other way round, or nothing, beyond the margin?"""
        return self.sign * (self.left - self.right) <= -self.spread

    def __bool__(self) -> bool:
        raise TypeError(f"{self.text} is not yes or no: write a < b < c as two comparisons, min(a, b) as extreme")


class Stated:
    """A number as a sentence of the paper prints it, such as 11%, 5.5k or 1.85, and the figure that it is of."""

    def __init__(self, text: str, size: Figure) -> None:
        self.text, self.size, self.how = text, size, size.text[1:-1] if size.text.startswith("(") else size.text
        number = text.rstrip("%k")
        self.sign, self.digits = text[len(number) :], len(number.partition(".")[2])
        self.scale = {"%": 0.01, "k": 1000.0, "": 1.0}[self.sign]
        self.value, self.unit = float(number) * self.scale, 10.0**-self.digits * self.scale

    @property
    def agrees(self) -> bool:
        """Is the figure the number stated, as far as that is printed? One unit of the last digit is allowed."""
        return abs(self.size.value - self.value) <= self.unit * (1 + 1e-9)

    def written(self, value: float) -> str:
        """Another value in the same writing, one digit finer."""
        return f"{value / self.scale:.{self.digits + 1}f}{self.sign}"
