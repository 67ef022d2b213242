"""From run folders to a comparison: what `scalegrad report FOLDER…` shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalegrad.report.comparison.systems import Comparison, Sample, System, merge_seeds
from scalegrad.report.paper import TABLES
from scalegrad.runs import Run, samples_name

_OPEN_ENDED = ("language_modelling", "completion")
HUMAN = "Human"


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
    tokenizer; the paper's rows of the same corpus and objectives come last.
    """
    scored = [(run, _evaluations(run)) for run in runs]
    chosen = corpus or _commonest(scored)
    if corpus is not None and all(corpus not in evaluations for _, evaluations in scored):
        known = sorted({name for _, evaluations in scored for name in evaluations})
        raise ValueError(f"corpus: no run was scored on {corpus!r}; they were on {', '.join(known) or 'none'}")
    groups: dict[str, list[tuple[Run, dict[str, Any]]]] = {}
    for run, evaluations in scored:
        groups.setdefault(_key(run.config), []).append((run, evaluations.get(chosen, {})))
    labels = _labels([members[0][0] for members in groups.values()])
    systems: list[System] = []
    for label, members in zip(labels, groups.values(), strict=True):
        systems += _rows(label, members, chosen)
    systems.sort(key=lambda system: system.kind == "decoded")
    missing = [str(run.path) for run, evaluations in scored if chosen not in evaluations]
    notes = list(dict.fromkeys(note for _, e in scored for note in e.get(chosen, {}).get("notes", [])))
    if missing:
        notes.append(f"Not scored on {chosen or 'any corpus'} yet (scalegrad evaluate FOLDER): {', '.join(missing)}.")
    human = _human(scored, chosen)
    comparable = [e[chosen]["protocol"] for _, e in scored if chosen in e and "protocol" in e[chosen]]
    paper, said = paper_rows(chosen, [system.label for system in systems], comparable)
    return Comparison([*systems, *human, *paper], chosen, [*notes, *said])


def paper_rows(
    corpus: str, labels: Iterable[str], protocols: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[System], list[str]]:
    """The paper's rows of a corpus for these labels and human text, and sentences on whether they compare."""
    table = TABLES.get(corpus)
    if table is None:
        return [], []
    wanted = [label for label in dict.fromkeys(labels) if label in table.rows]
    if not wanted:
        return [], []
    rows = [System(f"{label}, in the paper", table.rows[label], "paper", label.split()[0].lower()) for label in wanted]
    rows.append(System("Human, in the paper", table.rows[HUMAN], "paper", "human"))
    said = [
        f"The paper's rows (table {table.number}) are those of GPT-2 medium fine-tuned on WikiText-103: hold the "
        "direction and the size of differences against them, not the level.",
        "The paper's human row is on texts of 150 tokens, the one here on texts as long as the models': Rep-n grows "
        "with length.",
    ]
    if any(not protocol.get("gpt2_tokenizer", True) for protocol in protocols):
        rows = [replace(row, figures=_words_only(row.figures)) for row in rows]
        said.append(
            "Of the paper's rows only Rep-n is shown: the other columns depend on its tokenizer and text length."
        )
    return rows, said


def _words_only(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if name in ("rep_1", "rep_2", "rep_3")}


def _rows(label: str, members: Sequence[tuple[Run, dict[str, Any]]], corpus: str) -> list[System]:
    """The rows of runs that differ by their seed alone: as trained, then decoded in other ways."""
    trained = [_trained(label, run, evaluation, corpus) for run, evaluation in members]
    merged = merge_seeds(trained)
    merged = replace(merged, made=_made([run for run, _ in members]))
    rows = [merged]
    strategies = [list(evaluation.get("completion", {}))[1:] for _, evaluation in members]
    shared = [strategy for strategy in strategies[0] if all(strategy in others for others in strategies)]
    decoded = [merge_seeds([_decoded(label, run, e, corpus, strategy) for run, e in members]) for strategy in shared]
    return [*rows, *decoded]


def _trained(label: str, run: Run, evaluation: Mapping[str, Any], corpus: str) -> System:
    figures: dict[str, float] = {}
    samples: list[Sample] = []
    if any(part in evaluation for part in _OPEN_ENDED):
        figures |= evaluation.get("language_modelling", {})
        first = next(iter(evaluation.get("completion", {})), None)
        if first is not None:
            figures |= evaluation["completion"][first]
            samples = _samples(run, corpus, first)
    else:
        figures |= {k: v for k, v in evaluation.items() if isinstance(v, int | float) and not isinstance(v, bool)}
        samples = _samples(run, corpus, None)
    if not figures and run.finished:
        done = run.load("done")
        figures |= {"validation_ppl": done["validation_ppl"]} if done.get("validation_ppl") is not None else {}
    family, strength = _objective(run.config)
    return System(label, figures, "trained", family, strength, log=run.metrics(), samples=samples)


def _decoded(label: str, run: Run, evaluation: Mapping[str, Any], corpus: str, strategy: str) -> System:
    """A run under another decoding; the penalty alone has language-modelling columns too."""
    gamma = _gamma_of(strategy)
    figures = dict(evaluation["completion"][strategy])
    alone = gamma is not None and strategy == f"greedy,gamma={gamma}"
    if alone:
        figures |= evaluation.get("penalised", {}).get(f"gamma={gamma}", {})
    family, _ = _objective(run.config)
    name = f"{label}, decoded with γ={gamma:g}" if alone else f"{label}, {strategy}"
    return System(name, figures, "decoded", family, gamma, samples=_samples(run, corpus, strategy))


def _gamma_of(strategy: str) -> float | None:
    found = [word.partition("=")[2] for word in strategy.split(",") if word.strip().startswith("gamma=")]
    return float(found[0]) if found else None


def _human(scored: Sequence[tuple[Run, dict[str, Any]]], corpus: str) -> list[System]:
    for run, evaluations in scored:
        human = evaluations.get(corpus, {}).get("human")
        if human:
            figures = {name: value for part in human.values() for name, value in part.items()}
            return [System(HUMAN, figures, "human", samples=_samples(run, corpus, "human"))]
    return []


def _samples(run: Run, corpus: str, strategy: str | None) -> list[Sample]:
    """The texts of a decoding; of a task without decodings to choose from, samples/CORPUS.jsonl."""
    path = run.path / "samples" / (samples_name(corpus, strategy) if strategy else f"{corpus}.jsonl")
    if not path.is_file():
        return []
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Sample(record["prefix"], record["continuation"]) for record in records if "continuation" in record]


def _evaluations(run: Run) -> dict[str, Any]:
    found = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
    return {str(name): value for name, value in found.items() if isinstance(value, dict)}


def _commonest(scored: Sequence[tuple[Run, dict[str, Any]]]) -> str:
    counts = Counter(name for _, evaluations in scored for name in evaluations)
    return counts.most_common(1)[0][0] if counts else ""


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file() and any((path / name).exists() for name in ("metrics.jsonl", "done.json"))


def _objective(config: Mapping[str, Any]) -> tuple[str, float | None]:
    """("sg", 0.2) of "sg=0.2"; a schedule has no one strength."""
    name, _, strength = str(config.get("objective", "")).partition("=")
    try:
        return name, float(strength)
    except ValueError:
        return name, None


def _label(config: Mapping[str, Any]) -> str:
    name, _, strength = str(config.get("objective", "run")).partition("=")
    sign = {"sg": " γ=", "ul": " α="}.get(name)
    return name.upper() if not sign or not strength else f"{name.upper()}{sign}{strength}"


def _labels(runs: Sequence[Run]) -> list[str]:
    """The objectives' names; where two groups share one, their folders' names after it."""
    labels = [_label(run.config) for run in runs]
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
