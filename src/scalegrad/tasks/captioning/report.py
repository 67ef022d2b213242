"""Captioners side by side: the tables of a captioning experiment, made from its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalegrad.objectives import Objective
from scalegrad.results.comparison import Comparison, Sample, System, merge_seeds

PLAIN, BLOCKED = "greedy", "3-block"
FIGURES = ("cider", "bleu", "rep_1", "rep_2", "rep_3", "words")
NOTE = "Rep-n is on lower-cased words with punctuation."

DRAWN = ("scenes", "drawn scenes")
GRAMMAR = "The row Human is no human text here: a grammar writes the paragraphs about drawn scenes."


@dataclass(frozen=True)
class CaptionRun:
    """One trained captioner: its objective and seed, its captions.json, and its texts {decoding: {image: text}}."""

    objective: Objective
    seed: int
    found: Mapping[str, Any]
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    log: Sequence[Mapping[str, Any]] = ()
    made: Mapping[str, Any] = field(default_factory=dict)


def compare_captions(
    runs: Sequence[CaptionRun],
    corpus: str,
    references: Mapping[str, str] | None = None,
    pictures: Mapping[str, str] | None = None,
) -> Comparison:
    """Tables 4 and 9: CIDEr and Rep-n without and with trigram blocking, beside people.

    `references` and `pictures` (data: addresses) by image, for the page. The rows of several seeds are averaged.
    """
    references, pictures = references or {}, pictures or {}
    plain = [_row(group, PLAIN, "trained", pictures) for group in _groups(runs)]
    blocked = [_row(group, BLOCKED, "decoded", {}) for group in _groups(runs)]
    twins = [
        _row(group, name, "decoded", {})
        for group in _groups(runs)
        for name in group[0].found["rows"]
        if "gamma=" in name
    ]
    samples = [Sample(name, text, pictures.get(name, "")) for name, text in references.items()]
    human = {name: value for name, value in runs[0].found["human"].items() if name in FIGURES}
    people = System("Human", human, "human", samples=samples)
    notes = [NOTE, GRAMMAR] if corpus in DRAWN else [NOTE]
    return Comparison([*plain, *blocked, *twins, people], corpus, notes)


def compare_stochastic(runs: Sequence[CaptionRun], corpus: str) -> Comparison | None:
    """Table 18: sampling from the MLE model against its own greedy search with blocking; None without such rows."""
    groups = [group for group in _groups(runs) if group[0].objective.name == "mle"]
    drawn = [
        _row(group, name, "decoded", {})
        for group in groups
        for name in group[0].found["rows"]
        if name.startswith("top_")
    ]
    if not drawn:
        return None
    blocked = [_row(group, BLOCKED, "trained", {}) for group in groups]
    return Comparison([*drawn, *blocked], corpus)


def choose_strengths(runs: Sequence[CaptionRun]) -> dict[str, dict[str, str]]:
    """{family: {decoding: label}}: of several α or γ the one of the highest validation CIDEr (of its best β)."""
    chosen: dict[str, dict[str, str]] = {}
    for family in dict.fromkeys(run.objective.name for run in runs):
        groups = [group for group in _groups(runs) if group[0].objective.name == family]
        if len(groups) < 2:
            continue
        for name in (PLAIN, BLOCKED):
            reached = {
                group[0].objective.label: sum(max(run.found["betas"][name].values()) for run in group) / len(group)
                for group in groups
            }
            chosen.setdefault(family, {})[name] = max(reached, key=lambda label: reached[label])
    return chosen


def _groups(runs: Sequence[CaptionRun]) -> list[list[CaptionRun]]:
    """Runs that differ by their seed alone, in the order they came."""
    names = dict.fromkeys(str(run.objective) for run in runs)
    return [[run for run in runs if str(run.objective) == name] for name in names]


def _row(group: Sequence[CaptionRun], name: str, kind: str, pictures: Mapping[str, str]) -> System:
    return merge_seeds([_system(run, name, kind, pictures) for run in group])


def _system(run: CaptionRun, name: str, kind: str, pictures: Mapping[str, str]) -> System:
    kept = run.found["rows"][name].items()
    figures = {key: float(value) for key, value in kept if key in FIGURES and value is not None}  # None: was NaN
    strength: float | None = run.objective.strength if isinstance(run.objective.strength, float) else None
    label = run.objective.label
    if name == PLAIN:
        figures["validation_ppl"] = float(run.found["validation_ppl"])
    elif "gamma=" in name:
        strength = float(name.split("gamma=")[1].split(",")[0])
        label = f"{label}, decoded with γ={strength:g}"
    else:
        label, strength = f"{label} {name}", None
    texts = run.texts.get(name, {}) if kind == "trained" else {}
    samples = [Sample(image, text, pictures.get(image, "")) for image, text in texts.items()]
    log, made = (run.log, run.made) if kind == "trained" else ((), {})
    return System(label, figures, kind, run.objective.name, strength, samples=samples, log=log, made=made)
