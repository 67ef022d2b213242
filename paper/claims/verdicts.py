"""From claims and stored results to verdicts. Nothing here is typed by hand: a verdict is what its criteria give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paper.claims.claim import Claim, Stated
from paper.claims.criteria import Check
from paper.claims.stored import Results
from paper.claims.table import Absent, FigureTable, of_paper
from paper.printed import TABLES

HOLDS = "holds"
BY_LESS = "holds, by less"
IN_PART = "holds in part"
ONE_SEED = "one seed"
UNDECIDED = "undecided"
FAILS = "does not hold"
NOT_TESTED = "not tested"
WORDS = {  # from the strongest to the weakest
    HOLDS: "every comparison of the claim comes out as the paper says, by more than the margin",
    BY_LESS: "so it does, but the difference is smaller than the one the paper states",
    IN_PART: "some comparisons come out as the paper says by more than the margin, others do not",
    ONE_SEED: "every comparison comes out as the paper says, in one training; another might differ",
    UNDECIDED: "no difference larger than the margin, either way; or one training, which does not come out so",
    FAILS: "no comparison comes out as the paper says and one comes out the other way, or the claim's premise fails",
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

    @property
    def one_seed(self) -> bool:
        """Does a comparison rest on a single training?"""
        return any(check.seeds == 1 for check in self.checks)


class Run(NamedTuple):
    """A table of stored results, and what it gives for a claim."""

    results: Results
    corpus: str
    finding: Finding


@dataclass(frozen=True)
class Verdict:
    """A claim, what the paper's own table gives for it, and what each of the stored results gives."""

    claim: Claim
    printed: Finding | None  # None: the paper prints no table of these figures
    runs: Sequence[Run]

    @property
    def run(self) -> Run | None:
        """The run behind the verdict: of those with several seeds, or else of those with one, the weakest."""
        tested = [run for run in self.runs if run.finding.tested]
        deciding = [run for run in tested if not run.finding.one_seed] or tested
        return max(deciding, key=lambda run: list(WORDS).index(run.finding.word), default=None)

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
        if one.experiment == experiment and one.name not in claim.without
    ]


def _runs(claim: Claim, results: Results) -> list[Run]:
    """One for each table that has what the claim needs, of its corpus or else of any; or one that says what lacks.

    Where the table of its corpus has one seed, tables of other corpora with several are looked at too.
    """
    if results.scale == "smoke":
        return [Run(results, "", Finding(NOT_TESTED, why="the smoke scale shows that it runs, not what is true"))]
    found = [Run(results, corpus, find(claim, table)) for corpus, table in results.of_corpus().items()]
    tested = [run for run in found if run.finding.tested]
    of_corpus = [run for run in tested if run.corpus == claim.table]
    if of_corpus and all(run.finding.one_seed for run in of_corpus):
        return of_corpus + [run for run in tested if not run.finding.one_seed]
    return of_corpus or tested or found[:1]


def find(claim: Claim, table: FigureTable) -> Finding:
    """A claim held against one table."""
    reader = claim.reader(table)
    try:
        premise = [check for text in claim.premise for check in reader.checks(text)]
        checks = [check for text in claim.expressions for check in reader.checks(text)]
        size, spread = reader.number_and_spread(claim.size) if claim.size else (None, 0.0)
    except Absent as missing:
        return Finding(NOT_TESTED, why=str(missing))
    word = _word(checks, claim, size, spread)
    if not all(check.holds for check in premise):
        decided = any(check.reversed and check.seeds != 1 for check in premise)
        word = FAILS if decided else UNDECIDED
    return Finding(word, [*premise, *checks], size, spread)


def _word(checks: Sequence[Check], claim: Claim, size: float | None, spread: float) -> str:
    right = sum(check.holds for check in checks)
    if any(check.seeds == 1 for check in checks):
        return ONE_SEED if right == len(checks) else UNDECIDED
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
