"""From claims and stored results to verdicts. Nothing here is typed by hand: a verdict is what its criteria give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scalegrad.report.claims.claim import Claim, Stated
from scalegrad.report.claims.criteria import Check
from scalegrad.report.claims.stored import Results
from scalegrad.report.claims.table import Absent, FigureTable, of_paper
from scalegrad.report.paper import TABLES

HOLDS = "holds"
BY_LESS = "holds, by less"
IN_PART = "holds in part"
UNDECIDED = "undecided"
FAILS = "does not hold"
NOT_TESTED = "not tested"
WORDS = {
    HOLDS: "every comparison of the claim comes out as the paper says, by more than the deviation over seeds",
    BY_LESS: "as the paper says, but the difference is smaller than the one it states",
    IN_PART: "some of its comparisons come out as the paper says, others not",
    UNDECIDED: "no difference larger than the deviation over seeds, either way",
    FAILS: "none of its comparisons comes out as the paper says",
    NOT_TESTED: "with the reason",
}


@dataclass(frozen=True)
class Finding:
    """What one table gives for a claim: a word, the comparisons behind it, the size where one is stated, or why not."""

    word: str
    checks: Sequence[Check] = ()
    size: float | None = None
    spread: float = 0.0
    why: str = ""

    @property
    def tested(self) -> bool:
        """Was there something to compare?"""
        return self.word != NOT_TESTED


class Run(NamedTuple):
    """A table of stored results, and what it gives for a claim."""

    results: Results
    corpus: str
    finding: Finding


@dataclass(frozen=True)
class Verdict:
    """A claim, what the paper's own table gives for it, and what stored results give, the deciding ones first."""

    claim: Claim
    printed: Finding | None  # None: the paper prints no table of these figures
    runs: Sequence[Run]

    @property
    def run(self) -> Run | None:
        """The run behind the verdict: the first that could be tested."""
        return next((run for run in self.runs if run.finding.tested), None)

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return self.run.finding.word if self.run else NOT_TESTED

    @property
    def why(self) -> str:
        """Why there is none, where there is none."""
        if self.run:
            return ""
        reasons = [self.claim.not_tested, *(f"{run.results.name}: {run.finding.why}" for run in self.runs)]
        return next(filter(None, reasons), f"no stored results of {self.claim.experiment} yet")


def judge_all(claims: Sequence[Claim], results: Mapping[str, Results]) -> list[Verdict]:
    """A verdict for each claim."""
    return [judge(claim, results) for claim in claims]


def judge(claim: Claim, results: Mapping[str, Results]) -> Verdict:
    """What the paper's table gives for a claim, and every table of the results that it looks at."""
    printed = find(claim, of_paper(TABLES[claim.table])) if claim.table else None
    return Verdict(claim, printed, [run for one in looked_at(claim, results) for run in _runs(claim, one)])


def looked_at(claim: Claim, results: Mapping[str, Results]) -> list[Results]:
    """The results of the claim's experiment, the file of that name first, then those it also names."""
    return [
        one
        for experiment in (claim.experiment, *claim.also)
        for one in sorted(results.values(), key=lambda one: (one.name != experiment, one.name))
        if one.experiment == experiment
    ]


def _runs(claim: Claim, results: Results) -> list[Run]:
    """One for each table that has what the claim needs, of its corpus or else of any; or one that says what lacks."""
    if results.scale == "smoke":
        return [Run(results, "", Finding(NOT_TESTED, why="the smoke scale shows that it runs, not what is true"))]
    found = [Run(results, corpus, find(claim, table)) for corpus, table in results.of_corpus().items()]
    tested = [run for run in found if run.finding.tested]
    return [run for run in tested if run.corpus == claim.table] or tested or found[:1]


def find(claim: Claim, table: FigureTable) -> Finding:
    """A claim held against one table."""
    reader = claim.reader(table)
    try:
        checks = [check for text in claim.expressions for check in reader.checks(text)]
        size, spread = reader.number_and_spread(claim.size) if claim.size else (None, 0.0)
    except Absent as missing:
        return Finding(NOT_TESTED, why=str(missing))
    return Finding(_word(checks, claim, size, spread), checks, size, spread)


def _word(checks: Sequence[Check], claim: Claim, size: float | None, spread: float) -> str:
    right = sum(check.holds for check in checks)
    if right < len(checks):
        if right:
            return IN_PART
        return FAILS if any(check.reversed for check in checks) else UNDECIDED
    if size is None or not claim.stated:
        return HOLDS
    stated = Stated.read(claim.stated)
    if not checks:  # the number alone is the claim
        return HOLDS if agrees(claim, size) else FAILS
    short = abs(stated.value) - abs(size)
    return BY_LESS if short > stated.unit + spread else HOLDS


def agrees(claim: Claim, size: float) -> bool:
    """Is a size the one that the claim states, as far as it is printed? One unit of the last digit is allowed."""
    stated = Stated.read(claim.stated)
    return abs(size - stated.value) <= stated.unit * (1 + 1e-9)
