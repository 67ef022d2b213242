"""What a summarisation report shows, as plain data, and reading it from run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from scalegrad import objectives
from scalegrad.runs import Run, samples_name

# The columns, in their order: title, digits, and what it is.
COLUMNS: dict[str, tuple[str, int, str]] = {
    "rouge_1": ("R-1", 1, "ROUGE-1 F1 × 100: shared words"),
    "rouge_2": ("R-2", 1, "ROUGE-2 F1 × 100: shared pairs of words"),
    "rouge_l": ("R-L", 1, "ROUGE-L F1 × 100, summary level: words shared in order"),
    "moverscore_1": ("WMD-1", 1, "MoverScore-1 × 100: how little the words must move to become the reference's"),
    "rep_1": ("Rep-1", 3, "share of a summary's words said before in it; Rep-n: of its runs of n words"),
    "rep_2": ("Rep-2", 3, ""),
    "rep_3": ("Rep-3", 3, ""),
    "words": ("words", 1, "words a summary"),
    "novelty_1": ("new words", 3, "share of a summary's distinct words that its article does not have"),
    "novelty_2": ("new pairs", 3, "the same of its pairs of words"),
}


class Figure(NamedTuple):
    """A mean over texts, and its 95% bootstrap interval where there is one."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """A system's figures. `kind`: "trained", "decoded" (a trained model under another decoding), "human"."""

    label: str
    figures: Mapping[str, Figure]
    kind: str = "trained"
    family: str = "other"
    about: str = ""


@dataclass(frozen=True)
class Article:
    """A source, its references, and the summary of each system by its label."""

    id: str
    source: str
    references: Sequence[str]
    summaries: Mapping[str, str]


@dataclass(frozen=True)
class Sheet:
    """All that is shown; `families` gives the objective of each label, for its colour."""

    corpus: str
    rows: Sequence[Row]
    articles: Sequence[Article] = ()
    notes: Sequence[str] = ()
    families: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns that any row has."""
        return [name for name in COLUMNS if any(name in row.figures for row in self.rows)]


def load_sheet(runs: Sequence[Run], corpus: str) -> Sheet:
    """Evaluated runs side by side on `corpus`: each beam, then other decodings, the references."""
    rows: list[Row] = []
    decoded: list[Row] = []
    texts: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    people: list[Row] = []
    scores: dict[str, dict[str, list[float]]] = {}  # on the validation set, of each family's strengths
    labels = _labels(runs)
    for run, label in zip(runs, labels, strict=True):
        found = _evaluation(run, corpus)
        objective = objectives.parse(run.config["objective"])
        family = objective.name
        beta = found["length_normalisation"]
        about = f"β {beta['beta']:g}, {beta['rule']}; checkpoint by {found['checkpoint_rule']}"
        for strategy in found["completion"]:
            row = Row(label, _figures(found, strategy), "trained", family, about)
            if strategy == "beam":
                rows.append(row)
                texts[label] = run.load(f"samples/{samples_name(corpus, strategy)}")
            else:
                decoded.append(Row(f"{label}, {strategy}", row.figures, "decoded", family))
        people = people or [Row("Reference", _figures(found, "human"), "human", "human")]
        notes += [note for note in found["notes"] if note not in notes]
        score = validation_score(found)
        if score is not None:
            scores.setdefault(family, {}).setdefault(objective.label, []).append(score)
    families = {row.label: row.family for row in rows}
    notes += _strengths(scores)
    return Sheet(corpus, [*rows, *decoded, *people], _articles(texts), notes, families)


def _evaluation(run: Run, corpus: str) -> dict[str, Any]:
    found: dict[str, Any] = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
    if corpus not in found:
        known = ", ".join(found) or "nothing"
        raise ValueError(f"{run.path} was not evaluated on {corpus!r}; it was on {known}")
    one: dict[str, Any] = found[corpus]
    return one


def validation_score(evaluation: Mapping[str, Any]) -> float | None:
    """Of an evaluated run, at its own best β; None where β was given and there are no scores.

    >>> validation_score({"length_normalisation": {"beta": 1.0, "validation_scores": {"0.0": 21.0, "1.0": 23.0}}})
    23.0
    """
    scores = evaluation["length_normalisation"].get("validation_scores")
    return float(max(scores.values())) if scores else None


def _strengths(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """Which of several strengths of an objective the validation set chooses: a sentence each."""
    said = []
    for family in scores.values():
        means = {label: fmean(of_seeds) for label, of_seeds in family.items()}
        first, *others = sorted(means, key=lambda label: (-means[label], label))
        if others:
            rest = ", ".join(f"{label} {means[label]:.1f}" for label in others)
            said.append(f"The validation set chooses {first}: mean ROUGE {means[first]:.1f} there; {rest}.")
    return said


def _labels(runs: Sequence[Run]) -> list[str]:
    """The objectives' names; where two runs share one, their folders' names after it."""
    labels = [objectives.parse(run.config["objective"]).label for run in runs]
    return [
        label if labels.count(label) == 1 else f"{label} ({run.path.parent.name})"
        for label, run in zip(labels, runs, strict=True)
    ]


def _figures(found: Mapping[str, Any], strategy: str) -> dict[str, Figure]:
    means = found["human"]["references"] if strategy == "human" else found["completion"][strategy]
    bounds = found["intervals"][strategy]
    return {
        name: Figure(value, *bounds.get(name, (None, None)))
        for name, value in means.items()
        if name in COLUMNS and value is not None
    }


def _articles(texts: Mapping[str, list[dict[str, Any]]]) -> list[Article]:
    """The articles that every system summarised, in the order of the first."""
    if not texts:
        return []
    by_id = {label: {record["id"]: record for record in records} for label, records in texts.items()}
    first = next(iter(texts.values()))
    return [
        Article(
            str(record["id"]),
            record["prefix"],
            record["references"],
            {label: found[record["id"]]["continuation"] for label, found in by_id.items()},
        )
        for record in first
        if all(record["id"] in found for found in by_id.values())
    ]
