"""From claims and stored results to verdicts. Nothing here is typed by hand: a verdict is what its comparisons give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paper.claims.figures import Check, Stated
from paper.claims.stored import Results
from paper.claims.table import Absent, Table, of_paper
from paper.printed import JUDGED, TABLES, printed
from scalegrad.results.comparison import System

WORDS = {  # from the strongest to the weakest
    "holds": "every comparison of the claim comes out as the paper says, by more than the margin",
    "holds, by less": "so it does, but the difference is smaller than the one the paper states",
    "holds in part": "some comparisons come out as the paper says by more than the margin, others do not",
    "one seed": "every comparison comes out as the paper says, in one training; another might differ",
    "undecided": "no difference larger than the margin, either way; or one training, which does not come out so",
    "does not hold": "no comparison comes out as the paper says and one comes out the other way, or its premise fails",
    "not tested": "with the reason",
}
HOLDS, BY_LESS, IN_PART, ONE_SEED, UNDECIDED, FAILS, NOT_TESTED = WORDS
PAPER = Results("its own tables", (), {})
TABLE_3 = 3  # what raters said: no figures of models


@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, what it says in our words, and the comparisons that decide it.

    `table` is the number of the paper's own table of these figures, where it prints one, `corpus` the part of it that
    is meant. `experiment` is what `python -m paper`
    calls the test; its stored results and those of `also` decide, but for the files in `without`, which cannot test it.
    """

    id: str
    where: str
    says: str
    decide: Callable[[Table], Iterable[Check | Stated]]
    experiment: str
    table: int | None = None
    corpus: str | None = None
    also: Sequence[str] = ()
    without: Sequence[str] = ()
    note: str = ""
    not_tested: str = ""  # why there are no results that could


@dataclass(frozen=True)
class Finding:
    """What one table of results gives for a claim: a word, the comparisons behind it, the size stated, or why not."""

    results: Results
    corpus: str
    word: str
    checks: Sequence[Check] = ()
    stated: Stated | None = None
    why: str = ""

    @property
    def one_seed(self) -> bool:
        """Does a comparison rest on a single training?"""
        return any(check.seeds == 1 for check in self.checks)


class Verdict(NamedTuple):
    """A claim, what the paper's own table gives for it, and what each of the stored results gives."""

    claim: Claim
    printed: Finding | None  # None: the paper prints no table of these figures
    runs: Sequence[Finding]
    run: Finding | None  # the one behind the word
    word: str
    why: str  # there is no run behind it


def judge(claim: Claim, results: Mapping[str, Results]) -> Verdict:
    """Of the runs with several seeds, or else of those with one, the weakest decides."""
    printed = find(claim, PAPER, corpus_of(claim), paper_table(claim)) if claim.table else None
    runs = []
    for experiment in (claim.experiment, *claim.also):
        for one in sorted(results.values(), key=lambda one: (one.name != experiment, one.name)):
            if experiment in one.experiments and one.name not in claim.without:
                runs += _runs(claim, one)
    tested = [run for run in runs if run.word != NOT_TESTED]
    deciding = [run for run in tested if not run.one_seed] or tested
    if weakest := max(deciding, key=lambda run: list(WORDS).index(run.word), default=None):
        return Verdict(claim, printed, runs, weakest, weakest.word, "")
    reasons = [claim.not_tested, *(f"{run.results.name}: {run.why}" for run in runs)]
    why = next(filter(None, reasons), f"no stored results of {claim.experiment} yet")
    return Verdict(claim, printed, runs, None, NOT_TESTED, why)


def _runs(claim: Claim, results: Results) -> list[Finding]:
    """One for each table that has what the claim needs, of its corpus or else of any; or one that says what lacks.

    Where the table of its corpus has one seed, tables of other corpora with several are looked at too.
    """
    if results.scale == "smoke":
        return [Finding(results, "", NOT_TESTED, why="the smoke scale shows that it runs, not what is true")]
    runs = [find(claim, results, corpus, table) for corpus, table in results.tables.items()]
    tested = [run for run in runs if run.word != NOT_TESTED]
    of_corpus = [run for run in tested if run.corpus == corpus_of(claim)]
    if of_corpus and all(run.one_seed for run in of_corpus):
        return of_corpus + [run for run in tested if not run.one_seed]
    return of_corpus or tested or runs[:1]


def paper_table(claim: Claim) -> Table:
    """The paper's own table of a claim."""
    if claim.table == TABLE_3:
        return Table([System(pair.name, pair.figures, runs=0) for pair in JUDGED])
    return of_paper(printed(claim.table or 0, claim.corpus))


def corpus_of(claim: Claim) -> str:
    """The corpus of the paper's table, as a comparison calls it; "" where there is none."""
    if claim.table not in TABLES:
        return ""
    first = printed(claim.table or 0, claim.corpus)[0]
    return " ".join(part for part in (first.corpus, first.split) if part)


def find(claim: Claim, results: Results, corpus: str, table: Table) -> Finding:
    """A claim held against one table."""
    try:
        yielded = list(claim.decide(table))
    except Absent as missing:
        return Finding(results, corpus, NOT_TESTED, why=str(missing))
    checks = [one for one in yielded if isinstance(one, Check)]
    stated = next((one for one in yielded if isinstance(one, Stated)), None)
    word = _word([check for check in checks if not check.premise], stated)
    premise = [check for check in checks if check.premise]
    if not all(check.holds for check in premise):
        word = FAILS if any(check.reversed and check.seeds != 1 for check in premise) else UNDECIDED
    return Finding(results, corpus, word, checks, stated)


def _word(checks: Sequence[Check], stated: Stated | None) -> str:
    right = sum(check.holds for check in checks)
    if any(check.seeds == 1 for check in checks):
        return ONE_SEED if right == len(checks) else UNDECIDED
    if right < len(checks):
        return IN_PART if right else FAILS if any(check.reversed for check in checks) else UNDECIDED
    if stated is None:
        return HOLDS
    if not checks:  # the number alone is the claim
        return HOLDS if stated.agrees else FAILS
    short = abs(stated.value) - abs(stated.size.value)
    return BY_LESS if short > stated.unit + stated.size.margin else HOLDS
