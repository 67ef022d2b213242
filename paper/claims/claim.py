"""A claim of the paper, as `docs/results/claims.toml` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from paper.claims.criteria import Reader
from paper.claims.table import Absent, FigureTable
from paper.printed import TABLES

ROWS = {"mle": "MLE", "ul": "UL α=1.0", "sg": "SG γ=0.2", "human": "Human"}  # short names that every criterion knows


class Stated(NamedTuple):
    """A number as a sentence of the paper prints it: its value, and one unit of its last digit."""

    value: float
    unit: float
    text: str

    @classmethod
    def read(cls, text: str) -> Stated:
        """Of "11%", "5.5k" or "1.85".

        >>> Stated.read("5.5k")
        Stated(value=5500.0, unit=100.0, text='5.5k')
        """
        scale = {"%": 0.01, "k": 1000.0}.get(text[-1:], 1.0)
        digits = text.rstrip("%k")
        try:
            value = float(digits)
        except ValueError:
            raise ValueError(f"stated must be a number such as 11%, 5.5k or 1.85, not {text!r}") from None
        return cls(value * scale, 10.0 ** -len(digits.partition(".")[2]) * scale, text)

    def written(self, value: float) -> str:
        """Another value in the same writing, one digit finer.

        >>> Stated.read("11%").written(0.1157), Stated.read("5.5k").written(5420.0)
        ('11.6%', '5.42k')
        """
        sign = self.text[-1:] if self.text[-1:] in "%k" else ""
        scale = {"%": 0.01, "k": 1000.0}.get(sign, 1.0)
        digits = len(self.text.rstrip("%k").partition(".")[2]) + 1
        return f"{value / scale:.{digits}f}{sign}"


@dataclass(frozen=True)
class Claim:
    """One claim: in our words, where the paper makes it, and what decides it.

    `criteria` are expressions (`paper.claims.criteria`) over the rows that `rows` names; a `*` in one stands
    for each of `columns`. `premise` are comparisons without which the claim does not hold, whatever its criteria give.
    `size` is the number that the paper states as `stated`. `table` is the paper's own table of
    these figures (a key of `paper.printed.TABLES`), where it prints one. `experiment` is what `scalegrad
    reproduce` calls it; its stored results and those of `also` decide, but for the files in `without`, which cannot
    test it. `not_tested` says why there are no results that could.
    """

    id: str
    says: str
    where: str
    experiment: str
    criteria: Sequence[str] = ()
    premise: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    size: str = ""
    stated: str = ""
    table: str = ""
    also: Sequence[str] = ()
    without: Sequence[str] = ()
    note: str = ""
    not_tested: str = ""

    def __post_init__(self) -> None:
        if not self.criteria and not (self.size and self.stated):
            raise ValueError(f"claim {self.id!r} needs criteria, or a size and what is stated of it")
        if self.table and self.table not in TABLES:
            raise ValueError(f"claim {self.id!r}: table must be one of {', '.join(TABLES)}, not {self.table!r}")
        if any(".*" in text for text in self.criteria) != bool(self.columns):
            raise ValueError(f"claim {self.id!r}: columns are what * stands for in its criteria")
        if self.stated:
            Stated.read(self.stated)

    @property
    def expressions(self) -> list[str]:
        """The criteria, each for every column."""
        return [
            text.replace(".*", f".{column}")
            for text in self.criteria
            for column in (self.columns if ".*" in text else ("",))
        ]

    def reader(self, table: FigureTable) -> Reader:
        """What computes this claim's expressions on a table; of a row's several labels the first there is counts."""
        return Reader(table, {name: _first(table, label) for name, label in {**ROWS, **self.rows}.items()})


def _first(table: FigureTable, labels: str | Sequence[str]) -> str:
    if isinstance(labels, str):
        return labels
    for label in labels:
        try:
            table.row(label)
        except Absent:
            continue
        return label
    return labels[0]


class Setting(NamedTuple):
    """How the model and the data of stored results differ from the paper's, in words."""

    model: str
    data: str


def read_settings(path: str | Path) -> dict[str, Setting]:
    """The settings in a TOML file of claims, by the name of the results."""
    settings = {}
    for name, words in _read_toml(path).get("setting", {}).items():
        if set(words) != set(Setting._fields):
            raise ValueError(f"{path}: setting {name!r} must have {' and '.join(Setting._fields)}, not {words!r}")
        settings[name] = Setting(**words)
    return settings


def _read_toml(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as mistake:
        raise ValueError(f"{path}: {mistake}") from None


def read_claims(path: str | Path) -> list[Claim]:
    """The claims of a TOML file, in its order."""
    found = _read_toml(path).get("claim", [])
    known = {item.name for item in fields(Claim)}
    claims = []
    for given in found:
        unknown = set(given) - known
        if unknown:
            raise ValueError(f"{path}: claim {given.get('id')!r} has {', '.join(sorted(unknown))}, which means nothing")
        missing = [name for name in ("id", "says", "where", "experiment") if name not in given]
        if missing:
            raise ValueError(f"{path}: claim {given.get('id')!r} lacks {', '.join(missing)}")
        claims.append(Claim(**given))
    twice = {claim.id for claim in claims if sum(other.id == claim.id for other in claims) > 1}
    if twice:
        raise ValueError(f"{path}: {', '.join(sorted(twice))} named twice")
    return claims
