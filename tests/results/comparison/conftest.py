"""Hand-made run folders in the layout that training leaves, with figures chosen so that means are easy to check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scalegrad import objectives
from scalegrad.decoding import parse
from scalegrad.results.comparison import Comparison, Sample, System
from scalegrad.runs import Run, rows_of, samples_name
from scalegrad.runs.rows import KEY

CORPUS, SPLIT = "wikitext-103", "test"
LOOP = " the horses are brown and white. the horses are brown and white. the horses are brown and white."
HOSTILE = (
    ' <script>window.owned = 1</script><img src=x onerror=alert(1)> \u202eback\u202c \x1b[31m & "quotes" \'n so on.'
)

STRATEGIES = ("greedy", "greedy,gamma=0.2")

MakeRun = Callable[..., Run]
Part = tuple[dict[str, Any], dict[str, float]]


def measured(ppl: float, rep_1: float, strategies: Sequence[str] = STRATEGIES, **settings: Any) -> list[Part]:
    """What `scalegrad evaluate` leaves in a run, with few columns: settings and rows, part by part."""
    on = {"corpus": CORPUS, "split": SPLIT}
    tokens, texts = {**on, "window": 1024}, {**on, "new_tokens": 100}
    windows = {"rep_window_16": 0.1, "rep_window_32": 0.2, "rep_window_128": 0.6}
    people = {"rep_window_16": 0.09, "rep_window_32": 0.18, "rep_window_128": 0.48, "uniq": 1000}
    parts: list[Part] = [
        (tokens, {"ppl": ppl, "calibrated_ppl": ppl - 1, **windows}),
        ({**tokens, "penalty": "gamma=0.2"}, {"ppl": ppl + 2, "rep_window_128": 0.5}),
        ({**tokens, "objective": "human"}, people),
        ({**texts, "objective": "human"}, {"rep_1": 0.3, "rep_2": 0.1, "rep_3": 0.03, "uniq_w": 1200}),
    ]
    for strategy in map(parse, strategies):
        less = 0.1 if strategy.penalty else 0.0
        about = {**texts, "decoding": strategy.decoding, "penalty": strategy.penalty}
        parts.append((about, {"rep_1": rep_1 - less, "rep_2": 0.3 - less, "rep_3": 0.2 - less, "uniq_w": 900}))
    return [({**about, **settings}, figures) for about, figures in parts]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """make_run(name, objective, seed, measured(…)): a finished run, its log, its rows and its texts."""

    def make(name: str, objective: str, seed: int, parts: Sequence[Part] = (), rate: float = 1e-4) -> Run:
        config = {"task": "open_ended", "model": "base", "objective": objective}
        run = Run.create(tmp_path / name, config | {"settings": {"learning_rate": rate, "seed": seed}})
        trained = objectives.parse(objective)
        about = {"model": "base", "objective": trained.name, "strength": trained.amount, "seed": seed}
        for step in (10, 20, 30):
            run.log({"step": step, "nll": 4 - step / 100, "seen_mass": 0.4 - step / 1000})
            run.log({"step": step, "validation_nll": 4.2 - step / 100})
        run.add(rows_of({"validation_ppl": 49.4}, **about))
        run.finish({"selected_step": 30, "validation_nll": 3.9, "validation_ppl": 49.4, "seconds": 12.5})
        for settings, figures in parts:
            fields = {name: value for name, value in settings.items() if name in KEY}
            run.add(rows_of(figures, **{**about, **fields}), settings, notes=["4 of 9 prefixes."])
            if "new_tokens" in settings:
                strategy = ",".join(settings[name] for name in ("decoding", "penalty") if settings.get(name)) or "human"
                texts = [
                    {"id": i, "prefix": f"Prefix {i}", "continuation": f"{LOOP} {name} {strategy} {HOSTILE}"}
                    for i in range(4)
                ]
                run.save(f"samples/{samples_name(CORPUS, SPLIT, strategy)}", texts)
        return run

    return make


@pytest.fixture
def comparison() -> Comparison:
    """Four models, one decoding, human text: figures of the paper's test table."""
    texts = {"mle": LOOP, "sg": " a quiet harbour lay north of the town.", "human": " it rained for days."}

    def samples(objective: str) -> list[Sample]:
        return [Sample(f"In the year {1900 + i} the", f"{texts[objective]} {HOSTILE}") for i in range(9)]

    log = [
        {"step": s, "validation_nll": v, "seen_mass": m} for s, v, m in ((1, 4.0, 0.5), (2, 3.0, 0.4), (3, 3.5, 0.3))
    ]
    rows = [
        System(figures={"ppl": 13.24, "rep_1": 0.661, "rep_2": 0.5, "rep_3": 0.424, "uniq_w": 16830}, objective="mle",
               deviations={"ppl": 0.02, "rep_1": 0.003}, runs=3, log=log, samples=samples("mle")),
        System(figures={"ppl": 16.06, "rep_1": 0.559, "rep_2": 0.363, "rep_3": 0.291, "uniq_w": 19110}, objective="ul",
               strength=1.0, log=log),
        System(figures={"ppl": 14.2, "rep_1": 0.443, "rep_2": 0.215, "rep_3": 0.143, "uniq_w": 22250}, objective="sg",
               strength=0.2, deviations={"ppl": 0.05, "rep_1": 0.006}, runs=3, log=log, samples=samples("sg")),
        System(figures={"ppl": 13.53, "rep_1": 0.561, "rep_2": 0.389, "rep_3": 0.331, "uniq_w": 19130}, objective="sg",
               strength=0.5),
        System(figures={"ppl": 14.9, "rep_1": 0.45, "rep_2": 0.22, "rep_3": 0.15, "uniq_w": 21900}, objective="mle",
               decoding="greedy", penalty="gamma=0.2"),
        System(figures={"rep_1": 0.325, "rep_2": 0.076, "rep_3": 0.03, "uniq_w": 27598}, objective="human",
               samples=samples("human")),
    ]  # fmt: skip
    return Comparison(rows, f"{CORPUS} {SPLIT}", ["A note with <b>signs</b>."])
