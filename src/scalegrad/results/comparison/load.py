"""From run folders to a comparison: what `scalegrad report FOLDER…` shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalegrad import objectives
from scalegrad.results.comparison.evaluations import Texts, human_row, rows_of
from scalegrad.results.comparison.systems import Comparison, Sample, System, merge_seeds
from scalegrad.runs import Run, samples_name

Scored = tuple[Run, dict[str, Any]]  # a run, and its evaluations by corpus or that of one corpus


def find_runs(folders: Sequence[str | Path]) -> list[Run]:
    """The runs in these folders: a folder is a run itself, or holds some at any depth.

    Raises ValueError for a folder without one, and for a run that is named twice.
    """
    found: list[Run] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        here = [folder] if _is_run(folder) else sorted({path.parent for path in folder.rglob("config.json")})
        runs = [Run.open(path) for path in here if _is_run(path)]
        if not runs:
            raise ValueError(f"{folder} holds no run (a folder with config.json and metrics.jsonl or done.json)")
        found += runs
    places = [run.path.resolve() for run in found]
    for place in places:
        if places.count(place) > 1:
            raise ValueError(f"{place} is named twice; expected different runs")
    return found


def compare_runs(runs: Sequence[Run], corpus: str | None = None) -> Comparison:
    """Runs side by side on `corpus` (by default the one most of them were scored on), seeds of one config merged.

    Every decoding after a run's first becomes a row of its own. The human row is the runs' own, recomputed for their
    tokenizer.
    """
    scored = [(run, _evaluations(run)) for run in runs]
    chosen = corpus or _commonest(scored)
    if corpus is not None and all(corpus not in evaluations for _, evaluations in scored):
        known = sorted({name for _, evaluations in scored for name in evaluations})
        raise ValueError(f"corpus: no run was scored on {corpus!r}; they were on {', '.join(known) or 'none'}")
    groups: dict[str, list[Scored]] = {}
    for run, evaluations in scored:
        groups.setdefault(_key(run.config), []).append((run, evaluations.get(chosen, {})))
    labels = _labels([members[0][0] for members in groups.values()])
    systems: list[System] = []
    for label, members in zip(labels, groups.values(), strict=True):
        systems += _rows(label, members, chosen)
    systems.sort(key=place)
    missing = [str(run.path) for run, evaluations in scored if chosen not in evaluations]
    notes = list(dict.fromkeys(note for _, e in scored for note in e.get(chosen, {}).get("notes", [])))
    if missing:
        notes.append(f"Not scored on {chosen or 'any corpus'} yet (scalegrad evaluate FOLDER): {', '.join(missing)}.")
    own = [(run, evaluations[chosen]) for run, evaluations in scored if chosen in evaluations]
    human = next((row for run, e in own if (row := human_row(e, _texts(run, chosen)))), [])
    return Comparison([*systems, *human], chosen, notes)


def _rows(label: str, members: Sequence[Scored], corpus: str) -> list[System]:
    """The rows of runs that differ by their seed alone: as trained, then decoded in other ways.

    A decoding that only some of the seeds have is a row over these.
    """
    members = [member for member in members if member[1]] or members
    objective = str(members[0][0].config.get("objective", ""))
    per_run = [rows_of(label, objective, evaluation, _texts(run, corpus)) for run, evaluation in members]
    names = dict.fromkeys(row.label for rows in per_run for row in rows)
    merged = [merge_seeds([row for rows in per_run for row in rows if row.label == name]) for name in names]
    first, *decoded = merged
    if not first.figures:
        first = merge_seeds(
            [replace(rows[0], figures=_validation(m[0])) for rows, m in zip(per_run, members, strict=True)]
        )
    runs = [run for run, _ in members]
    return [replace(first, log=runs[0].metrics(), made=_made(runs)), *decoded]


def place(system: System) -> tuple[bool, int, float]:
    """Trained before decoded, MLE before UL before SG, each from weak to strong; others stay where they are."""
    family = ("mle", "ul", "sg").index(system.family) if system.family in ("mle", "ul", "sg") else 3
    strength = system.strength or 0.0
    return system.kind == "decoded", family, strength if system.family == "ul" else -strength


def _validation(run: Run) -> dict[str, float]:
    """What a run that nobody scored yet has to show."""
    found = run.load("done").get("validation_ppl") if run.finished else None
    return {} if found is None else {"validation_ppl": found}


def _texts(run: Run, corpus: str) -> Texts:
    return lambda strategy: _samples(run, corpus, strategy)


def _samples(run: Run, corpus: str, strategy: str | None) -> list[Sample]:
    """The texts of a decoding; of a task without decodings to choose from, samples/CORPUS.jsonl."""
    name = f"samples/{samples_name(corpus, strategy) if strategy else f'{corpus}.jsonl'}"
    records = run.load(name) if (run.path / name).is_file() else []
    return [Sample(record["prefix"], record["continuation"]) for record in records if "continuation" in record]


def _evaluations(run: Run) -> dict[str, Any]:
    found = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
    return {str(name): value for name, value in found.items() if isinstance(value, dict)}


def _commonest(scored: Sequence[Scored]) -> str:
    counts = Counter(name for _, evaluations in scored for name in evaluations)
    return counts.most_common(1)[0][0] if counts else ""


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file() and any((path / name).exists() for name in ("metrics.jsonl", "done.json"))


def _labels(runs: Sequence[Run]) -> list[str]:
    """The objectives' names; where two groups share one, their folders' names after it."""
    labels = [objectives.parse(run.config["objective"]).label if "objective" in run.config else "RUN" for run in runs]
    return [
        label if labels.count(label) == 1 else f"{label} ({run.path.name})"
        for label, run in zip(labels, runs, strict=True)
    ]


def _key(config: Mapping[str, Any]) -> str:
    """A config without its seed: runs that agree in it are merged."""

    def without_seed(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: without_seed(item) for key, item in sorted(value.items()) if key != "seed"}
        return value

    return json.dumps(without_seed(config), sort_keys=True)


def _made(runs: Sequence[Run]) -> dict[str, Any]:
    made: dict[str, Any] = {"config": _with_seeds([run.config for run in runs])}
    for name in ("environment", "done"):
        if (runs[0].path / f"{name}.json").is_file():
            made[name] = runs[0].load(name)
    return made


def _with_seeds(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first config, its seeds those of all."""
    merged: dict[str, Any] = {}
    for key, value in configs[0].items():
        if isinstance(value, Mapping):
            merged[key] = _with_seeds([config[key] for config in configs])
        elif key == "seed":
            merged[key] = ", ".join(dict.fromkeys(str(config[key]) for config in configs))
        else:
            merged[key] = value
    return merged
