"""The verdicts as a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paper.claims.claim import Claim, Setting, Stated
from paper.claims.criteria import Check
from paper.claims.stored import Results
from paper.claims.verdicts import HOLDS, IN_PART, NOT_TESTED, WORDS, Finding, Run, Verdict, agrees

COMMAND = "python -m paper.claims"
HEAD = """# The paper's claims, one by one

Made by `{command}` from [claims.toml]({claims}), which has each claim and the comparisons that decide
it, and from the results stored beside it. Do not edit: change the file or the results and run the command again.

"Here" a difference counts where it is larger than a margin: half the width of its 95% t-interval over seeds. Two rows
of three seeds have 4 degrees of freedom, so the margin is 2.78 standard errors, or 1.6 times the two deviations
together. By chance one comparison in twenty passes it, and there are hundreds on this page. One training has no margin
and decides nothing. Runs with several seeds decide before runs with one, and of several runs the weakest decides.

"Its own tables" holds the claim against the figures that the paper prints; a stated number agrees with them where it is
off by no more than one unit of its last digit.
"""


NOT_STATED = Setting("not stated", "not stated")


def page(
    verdicts: Sequence[Verdict], settings: Mapping[str, Setting] | None = None, claims: str = "claims.toml"
) -> str:
    """The page: how many claims hold, the results looked at, a table of verdicts, and every comparison.

    `settings` say how results, by name, differ from the paper's. `claims` is the path from the page to the claims.
    """
    settings = settings or {}
    parts = [
        HEAD.format(command=COMMAND, claims=claims),
        _counts(verdicts),
        "## Where the paper's text and its own tables differ\n\n" + _differences(verdicts),
        "## Verdicts",
        *(_table(experiment, verdicts, settings) for experiment in dict.fromkeys(v.claim.experiment for v in verdicts)),
        "## Results behind them\n\n" + _sources(verdicts, settings),
        "## Every comparison",
        *(_details(verdict) for verdict in verdicts),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _counts(verdicts: Sequence[Verdict]) -> str:
    lines = ["| verdict | claims | meaning |", "|---|---:|---|"]
    for word, meaning in WORDS.items():
        lines.append(f"| {word} | {sum(verdict.word == word for verdict in verdicts)} | {meaning} |")
    return "\n".join(lines)


def _sources(verdicts: Sequence[Verdict], settings: Mapping[str, Setting]) -> str:
    used = {run.results.name: run.results for verdict in verdicts for run in verdict.runs}
    lines = ["| results | the paper's model? | its data? | command | seeds | made |", "|---|---|---|---|---:|---|"]
    for one in used.values():
        model, data = map(_cell, settings.get(one.name, NOT_STATED))
        lines.append(f"| {_linked(one)} | {model} | {data} | {_command(one)} | {one.seeds} | {_made(one)} |")
    return "\n".join(lines)


def _linked(one: Results) -> str:
    return f"[{one.name}]({one.file})" if one.file else one.name


def _command(one: Results) -> str:
    short = f"demo --seeds {one.seeds}" if one.experiment == "demo" else f"reproduce {one.experiment}"
    return f"`{_cell(str(one.made.get('shown', {}).get('command') or f'scalegrad {short}'))}`"


def _made(one: Results) -> str:
    if not one.file:
        return "exact: computed with this page"
    parts = [one.made, *(part for part in one.made.values() if isinstance(part, dict))]  # a part a corpus, or the whole
    trained = next((part["trained_on"] for part in parts if "trained_on" in part), one.made.get("shown", {}))
    kept = [one.made.get("model"), trained.get("hardware"), trained.get("started")]
    told = [f"scale {one.scale}" if one.scale else "", *(str(value) for value in kept if value)]
    return _cell(", ".join(part for part in told if part)) or "see the file"


def _table(experiment: str, verdicts: Sequence[Verdict], settings: Mapping[str, Setting]) -> str:
    lines = [f"### `python -m paper {experiment}`", ""]
    lines += ["| claim | in the paper | its own tables | here | model and data as in the paper? | verdict |"]
    lines += ["|---|---|---|---|---|---|"]
    for verdict in verdicts:
        claim = verdict.claim
        if claim.experiment != experiment:
            continue
        here = [f"{_brief(claim, run.finding)} ({_source(claim, run)})" for run in verdict.runs if run.finding.tested]
        cells = [
            f"[{claim.id}](#{claim.id}): {claim.says}",
            claim.where,
            _printed(verdict),
            "<br>".join(here) or verdict.why,
            _as_in_the_paper(verdict, settings),
            f"**{verdict.word}**",
        ]
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def _as_in_the_paper(verdict: Verdict, settings: Mapping[str, Setting]) -> str:
    """The first words of the setting behind a verdict; the rest stands once, with the results."""
    if verdict.run is None:
        return "–"
    setting = settings.get(verdict.run.results.name, NOT_STATED)
    return ", ".join(f"{name} {words.partition(':')[0]}" for name, words in setting._asdict().items())


def _source(claim: Claim, run: Run) -> str:
    """The file, and the corpus where it is not the one of the paper's table."""
    told = f", {run.corpus}" if run.corpus not in ("", claim.table) else ""
    return f"{_linked(run.results)}{told}"


def _printed(verdict: Verdict) -> str:
    if verdict.printed is None:
        return "–"
    return _brief(verdict.claim, verdict.printed) if verdict.printed.tested else "not in its tables"


def _brief(claim: Claim, finding: Finding) -> str:
    """The word, the size where one is stated, and how many comparisons came out as claimed."""
    right = sum(check.holds for check in finding.checks)
    told = finding.word if finding.word != IN_PART else f"{IN_PART}, {right} of {len(finding.checks)}"
    if finding.size is None or not claim.stated:
        return told
    written = Stated.read(claim.stated).written
    spread = f" ± {written(finding.spread)}" if finding.spread and written(finding.spread) != written(0.0) else ""
    return f"{told}: {written(finding.size)}{spread}"


def _differences(verdicts: Sequence[Verdict]) -> str:
    lines = []
    for verdict in verdicts:
        claim, printed = verdict.claim, verdict.printed
        if printed is None or not printed.tested:
            continue
        wrong = [_said(check) for check in printed.checks if not check.holds]
        if wrong:
            lines.append(f"- [{claim.id}](#{claim.id}): in its own table it is not so that {'; '.join(wrong)}.")
        if printed.size is not None and claim.stated and not agrees(claim, printed.size):
            given = Stated.read(claim.stated).written(printed.size)
            how = ", straight between its points," if "along(" in claim.size else ""
            lines.append(f"- [{claim.id}](#{claim.id}): it states {claim.stated}, its own table{how} gives {given}.")
    return "\n".join(lines) or "Nowhere."


def _details(verdict: Verdict) -> str:
    claim = verdict.claim
    rows = "".join(f"; {name} = {_labels(label)}" for name, label in claim.rows.items())
    lines = [f"### {claim.id}", "", f"{claim.says} {claim.where[0].upper()}{claim.where[1:]}."]
    if claim.stated:
        lines.append(f"Stated: {claim.stated}, computed as `{claim.size}`.")
    lines += [claim.note] if claim.note else []
    lines += ["", f"- criteria: {', '.join(f'`{text}`' for text in claim.criteria)}{rows}"] if claim.criteria else [""]
    lines += [f"- premise: {', '.join(f'`{text}`' for text in claim.premise)}"] if claim.premise else []
    if verdict.printed is not None:
        lines.append(f"- its own tables: {_told(claim, verdict.printed)}")
    lines += [f"- {_source(claim, run)}: {_told(claim, run.finding)}" for run in verdict.runs]
    if verdict.run is None:
        lines.append(f"- here: {NOT_TESTED}: {verdict.why}")
    return "\n".join(lines)


def _labels(labels: str | Sequence[str]) -> str:
    return labels if isinstance(labels, str) else " or ".join(labels)


def _told(claim: Claim, finding: Finding) -> str:
    if not finding.tested:
        return f"{NOT_TESTED}: {finding.why}"
    wrong = [check for check in finding.checks if not check.holds]
    told = _brief(claim, finding)
    shown = finding.checks if len(finding.checks) <= 4 or finding.word == HOLDS else wrong
    intro = "" if shown is finding.checks else "not so: "
    return f"{told}. {intro}{'; '.join(map(_said, shown))}".rstrip(". ") + "."


def _said(check: Check) -> str:
    """A comparison with its figures."""
    apart = "" if check.holds or check.reversed else f", within ± {_number(check.spread)}"
    return f"`{check.text}` ({_number(check.left)} against {_number(check.right)}{apart})"


def _number(value: float) -> str:
    """Short, and the same on every machine: what is nearly 0 may be one rounding here and another there."""
    if 0 < abs(value) < 0.0001:
        return "under 0.0001" if value > 0 else "just below 0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
