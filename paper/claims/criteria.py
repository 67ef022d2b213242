"""Small expressions over a table's figures, such as `sg.ppl < ul.ppl`: read, computed, held against their margin.

A row is named by its short name (`sg`, `mle`, …), a figure by row and column (`sg.rep_1`). There are numbers, + − * /,
the functions of `FUNCTIONS`, and comparisons with < and >, also chained. Nothing else is read, let alone run.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paper.claims.table import Absent, FigureTable
from scalegrad._counts import counted
from scalegrad.results.comparison.curve import LEAST_POINTS, is_curve, where

OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
FUNCTIONS = ("abs", "min", "max", "deviation", "along")
# Student's t of 95%, both sides, for 1, 2, 3, … degrees of freedom; the last serves all above.
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NORMAL_95 = 1.960


@dataclass(frozen=True)
class Check:
    """One comparison: what it says, both sides, and half the width of the 95% interval of their difference."""

    text: str
    left: float
    right: float
    sign: int  # +1 where the claim is left > right
    spread: float
    seeds: int = 0  # the fewest behind a figure in it; 0 where none has seeds

    @property
    def holds(self) -> bool:
        """Is the difference as claimed, and larger than the margin?"""
        return self.sign * (self.left - self.right) > self.spread

    @property
    def reversed(self) -> bool:
        """Is the difference the other way round, or nothing, beyond the margin?"""
        return self.sign * (self.left - self.right) <= -self.spread


class Reader:
    """Computes expressions on one table, `names` giving the label of each short name."""

    def __init__(self, table: FigureTable, names: Mapping[str, str]) -> None:
        self.table, self.names = table, names
        self._used: dict[tuple[str, str], float] = {}  # figures looked at, and how far each is moved
        self.seeds = 0  # the fewest behind a figure of the last expression

    def number(self, text: str) -> float:
        """An expression's value.

        >>> from paper.claims.table import Figures
        >>> table = FigureTable({"MLE": Figures({"ppl": 10.0}), "SG γ=0.2": Figures({"ppl": 11.0})})
        >>> round(Reader(table, {"mle": "MLE", "sg": "SG γ=0.2"}).number("sg.ppl / mle.ppl - 1"), 9)
        0.1
        """
        return self._value(_parse(text))

    def number_and_spread(self, text: str) -> tuple[float, float]:
        """An expression's value and half the width of its 95% interval, from the deviations of the figures in it.

        Each figure is moved by its standard error alone, and what that changes adds up as independent changes do. The
        degrees of freedom are the seeds of the rows that matter, less one for each row.
        """
        return self._with_spread(lambda: self.number(text))

    def checks(self, text: str) -> list[Check]:
        """The comparisons of a criterion: one, or several in a chain.

        >>> from paper.claims.table import Figures
        >>> table = FigureTable({"MLE": Figures({"rep_1": 0.7}, {"rep_1": 0.03}), "SG": Figures({"rep_1": 0.6})})
        >>> [check.holds for check in Reader(table, {"mle": "MLE", "sg": "SG"}).checks("sg.rep_1 < mle.rep_1 < 0.72")]
        [True, False]
        """
        node = _parse(text)
        if not isinstance(node, ast.Compare):
            raise ValueError(f"a criterion compares with < or >, not {text!r}")
        sides = [node.left, *node.comparators]
        found = []
        for left, how, right in zip(sides, node.ops, sides[1:], strict=False):
            if not isinstance(how, ast.Lt | ast.Gt):
                raise ValueError(f"a criterion compares with < or >, not {text!r}")
            found.append(self._check(left, right, 1 if isinstance(how, ast.Gt) else -1))
        return found

    def _check(self, left: ast.expr, right: ast.expr, sign: int) -> Check:
        _, spread = self._with_spread(lambda: self._value(left) - self._value(right))
        text = f"{ast.unparse(left)} {'>' if sign > 0 else '<'} {ast.unparse(right)}"
        return Check(text, self._value(left), self._value(right), sign, spread, self.seeds)

    def _with_spread(self, compute: Callable[[], float]) -> tuple[float, float]:
        self._used = {}
        value = compute()
        rows = {label: self.table.row(label) for label, _ in self._used}
        self.seeds = min((row.runs for row in rows.values() if row.runs), default=0)
        square, freedom = 0.0, {}
        for label, column in list(self._used):
            error = rows[label].deviations.get(column, 0.0) / math.sqrt(max(rows[label].runs, 1))
            changes = []
            for direction in (error, -error):
                self._used[label, column] = direction
                try:
                    changes.append(abs(compute() - value))
                except Absent:  # moved off the end of a curve: the other direction counts
                    continue
            self._used[label, column] = 0.0
            change = max(changes, default=0.0)
            square += change**2
            if change and rows[label].runs > 1:
                freedom[label] = rows[label].runs - 1
        self._used = {}
        degrees = sum(freedom.values())
        return value, math.sqrt(square) * (T_95[min(degrees, len(T_95)) - 1] if degrees else NORMAL_95)

    def _value(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Attribute(value=ast.Name(id=name), attr=column):
                return self._figure(self._label(name), column)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                return self._call(name, arguments)
        raise ValueError(f"an expression has figures (row.column), numbers and + - * /, not {ast.unparse(node)!r}")

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> float:
        match name, arguments:
            case "along", [ast.Name(id=family), ast.Name(id=wanted), ast.Name(id=given), at]:
                return self._along(family, wanted, given, self._value(at))
            case "deviation", [ast.Attribute(value=ast.Name(id=row), attr=column)]:
                return self.table.deviation(self._label(row), column)
            case "abs", [one]:
                return abs(self._value(one))
            case "min" | "max", [_, _, *_]:
                return (min if name == "min" else max)(map(self._value, arguments))
        raise ValueError(f"{name} is not called like this: {', '.join(map(ast.unparse, arguments))}")

    def _along(self, family: str, wanted: str, given: str, at: float) -> float:
        """`wanted` on an objective's curve, straight between its points, where `given` is `at`."""
        curve = self.table.curve(family)
        points = [(self._figure(label, given), self._figure(label, wanted)) for label in curve]
        if not is_curve(points):
            here = counted(len(set(points)), "point")
            raise Absent(f"only {here} of {family.upper()}'s curve, and it takes at least {LEAST_POINTS}")
        found = where(points, at, on=0)
        if found is None:
            raise Absent(f"no point of {family.upper()}'s curve ({counted(len(points), 'point')}) has {given} {at:.4g}")
        return found

    def _label(self, name: str) -> str:
        if name not in self.names:
            raise ValueError(f"{name!r} names no row; there are {', '.join(self.names)}")
        return self.names[name]

    def _figure(self, label: str, column: str) -> float:
        return self.table.value(label, column) + self._used.setdefault((label, column), 0.0)


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"not an expression: {text!r}") from None
