"""`python -m paper.claims`: hold the claims against the stored results and write the page."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from paper.claims.catalogue import CLAIMS, SETTINGS
from paper.claims.figures import Check
from paper.claims.stored import Results, illustrations, read_results
from paper.claims.verdicts import IN_PART, WORDS, Claim, Finding, Verdict, corpus_of, judge
from scalegrad.runs.atomic import write_text

PACKAGE = str(__package__)
HEAD = f"""# The paper's claims, one by one

Made by `python -m {PACKAGE}` from `{PACKAGE.replace(".", "/")}/catalogue.py`, which has each claim
and the comparisons that decide it, and from the results stored beside this page. Do not edit: change those and run the
command again.

"Here" a difference counts where it is larger than a margin: half the width of its 95% t-interval over seeds. Two rows
of three seeds have 4 degrees of freedom, so the margin is 2.78 standard errors, or 1.6 times the two deviations
together. By chance one comparison in twenty passes it, and there are hundreds here. One training has no margin and
decides nothing. Runs with several seeds decide before runs with one, and of several runs the weakest decides.

"Its own tables" holds the claim against the figures that the paper prints; a stated number agrees with them where it is
off by no more than one unit of its last digit. `ppl(SG where rep_l is x)` lies on ScaleGrad's curve, straight between
the points that were tried, MLE being one.
"""
NOT_STATED = ("not stated", "not stated")


def page(verdicts: Sequence[Verdict], settings: Mapping[str, tuple[str, str]]) -> str:
    """How many claims hold, a table of verdicts, the results behind them, and the comparisons that decide.

    `settings` say of results, by name, how model and data differ from the paper's.
    """
    counts = Counter(verdict.word for verdict in verdicts)
    used = {run.results.name: run.results for verdict in verdicts for run in verdict.runs}
    parts = [
        HEAD,
        _table("verdict | claims | meaning", [[word, str(counts[word]), why] for word, why in WORDS.items()]),
        "## Where the paper's text and its own tables differ",
        "\n".join(line for verdict in verdicts for line in _differences(verdict)) or "Nowhere.",
        "## Verdicts",
    ]
    for experiment in dict.fromkeys(verdict.claim.experiment for verdict in verdicts):
        rows = [_row(verdict, settings) for verdict in verdicts if verdict.claim.experiment == experiment]
        names = "claim | in the paper | its own tables | here | model and data as in the paper? | verdict"
        parts += [f"### `python -m paper {experiment}`", _table(names, rows)]
    sources = [[_linked(one), *settings.get(name, NOT_STATED), str(one.seeds)] for name, one in used.items()]
    parts += ["## Results behind them", _table("results | the paper's model? | its data? | seeds", sources)]
    parts += ["## What decides", *map(_details, verdicts)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(names: str, rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join([f"| {names} |", "|---" * len(names.split(" | ")) + "|", *(f"| {' | '.join(r)} |" for r in cells)])


def _row(verdict: Verdict, settings: Mapping[str, tuple[str, str]]) -> list[str]:
    claim, printed = verdict.claim, verdict.printed
    here = [f"{_brief(run)} ({_source(claim, run)})" for run in verdict.runs if not run.why]
    alike = "–"
    if verdict.run:
        model, data = (text.partition(":")[0] for text in settings.get(verdict.run.results.name, NOT_STATED))
        alike = f"model {model}, data {data}"
    own = _brief(printed) if printed else "–"
    name = f"[{claim.id}](#{claim.id}): {claim.says}"
    return [name, claim.where, own, "<br>".join(here) or verdict.why, alike, f"**{verdict.word}**"]


def _linked(one: Results) -> str:
    return f"[{one.name}]({one.file})" if one.file else one.name


def _source(claim: Claim, run: Finding) -> str:
    """The file, and the corpus where it is not the one of the paper's table."""
    return _linked(run.results) + (f", {run.corpus}" if run.corpus not in ("", corpus_of(claim)) else "")


def _brief(run: Finding) -> str:
    """The word, the size where one is stated, and how many comparisons came out as claimed."""
    share = f", {sum(check.holds for check in run.checks)} of {len(run.checks)}" if run.word == IN_PART else ""
    if run.stated is None:
        return run.word + share
    size, margin, zero = map(run.stated.written, (run.stated.size.value, run.stated.size.margin, 0.0))
    return f"{run.word}{share}: {size}" + (f" ± {margin}" if margin != zero else "")


def _differences(verdict: Verdict) -> list[str]:
    if (printed := verdict.printed) is None:
        return []
    wrong = "; ".join(_said(check) for check in printed.checks if not check.holds)
    lines = [f"in its own table it is not so that {wrong}"] if wrong else []
    if (stated := printed.stated) and not stated.agrees:
        size = stated.written(stated.size.value)
        lines.append(f"it states {stated.text}, its own table gives {size} as `{stated.how}`")
    return [f"- [{verdict.claim.id}](#{verdict.claim.id}): {line}." for line in lines]


def _details(verdict: Verdict) -> str:
    """The comparisons of the run behind a verdict, or of the paper's own table; of many those that are not so."""
    lines = [f"### {verdict.claim.id}", verdict.claim.note]
    if run := verdict.run or verdict.printed:
        stated = f" Stated: {run.stated.text}, computed as `{run.stated.how}`." if run.stated else ""
        wrong = [check for check in run.checks if not check.holds] if len(run.checks) > 4 else []
        shown = "not so: " * bool(wrong) + "; ".join(map(_said, wrong or run.checks))
        lines.append(f"{_source(verdict.claim, run)}: {_brief(run)}. {shown}.{stated}")
    return "\n\n".join(line for line in lines if line)


def _said(check: Check) -> str:
    """A comparison with its figures."""
    apart = "" if check.holds or check.reversed else f", within ± {_number(check.spread)}"
    return f"`{check.text}` ({_number(check.left)} against {_number(check.right)}{apart})"


def _number(value: float) -> str:
    """Short, and the same on every machine: what is nearly 0 may be one rounding here and another there."""
    if 0 < abs(value) < 0.0001:
        return "under 0.0001" if value > 0 else "just below 0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def main(argv: list[str] | None = None) -> None:
    """Write FOLDER/claims.md; what the user must put right ends with exit code 2 and one sentence."""
    parser = argparse.ArgumentParser(prog=f"python -m {PACKAGE}", description=__doc__)
    parser.add_argument("folder", nargs="?", default="docs/results", help="where the results are (docs/results)")
    path = Path(parser.parse_args(argv).folder) / "claims.md"
    try:
        results = read_results(path.parent) | illustrations()
        verdicts = [judge(claim, results) for claim in CLAIMS]
        write_text(path, page(verdicts, SETTINGS))
    except (ValueError, OSError) as mistake:
        print(f"{PACKAGE}: {mistake}", file=sys.stderr)
        sys.exit(2)
    counts = Counter(verdict.word for verdict in verdicts)
    print(f"{path}: {'; '.join(f'{word}: {counts[word]}' for word in WORDS)}")


if __name__ == "__main__":
    main()
