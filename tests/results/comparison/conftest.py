"""Hand-made run folders in the layout that training leaves, with figures chosen so that means are easy to check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalegrad.results.comparison import Comparison, Sample, System
from scalegrad.runs import Run, samples_name

CORPUS = "wikitext-103 test"
PROTOCOL = {"gpt2_tokenizer": True, "chunk_targets": 1024, "new_tokens": 100}
LOOP = " the horses are brown and white. the horses are brown and white. the horses are brown and white."
HOSTILE = (
    ' <script>window.owned = 1</script><img src=x onerror=alert(1)> \u202eback\u202c \x1b[31m & "quotes" \'n so on.'
)

MakeRun = Callable[..., Run]


def evaluation(ppl: float, rep_1: float, **more: Any) -> dict[str, Any]:
    """What `scalegrad evaluate` gives, with few columns."""
    return {
        "corpus": CORPUS,
        "language_modelling": {
            "ppl": ppl,
            "calibrated_ppl": ppl - 1,
            "rep_window_16": 0.1,
            "rep_window_32": 0.2,
            "rep_window_128": 0.6,
        },
        "penalised": {"gamma=0.2": {"ppl": ppl + 2, "rep_window_128": 0.5}},
        "completion": {
            "greedy": {"rep_1": rep_1, "rep_2": 0.3, "rep_3": 0.2, "uniq_w": 900, "n_texts": 4},
            "greedy,gamma=0.2": {"rep_1": rep_1 - 0.1, "rep_2": 0.2, "rep_3": 0.1, "uniq_w": 950, "n_texts": 4},
        },
        "human": {
            "language_modelling": {"rep_window_16": 0.09, "rep_window_32": 0.18, "rep_window_128": 0.48, "uniq": 1000},
            "completion": {"rep_1": 0.3, "rep_2": 0.1, "rep_3": 0.03, "uniq_w": 1200, "n_texts": 4},
        },
        "protocol": PROTOCOL,
        "notes": ["4 of 9 prefixes."],
        **more,
    }


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """make_run(name, objective, seed, evaluation): a finished run, its log and its texts."""

    def make(name: str, objective: str, seed: int, scores: dict[str, Any] | None = None, rate: float = 1e-4) -> Run:
        config = {"task": "open_ended", "model": "base", "objective": objective}
        run = Run.create(tmp_path / name, config | {"settings": {"learning_rate": rate, "seed": seed}})
        for step in (10, 20, 30):
            run.log({"step": step, "nll": 4 - step / 100, "seen_mass": 0.4 - step / 1000})
            run.log({"step": step, "validation_nll": 4.2 - step / 100})
        run.finish({"selected_step": 30, "validation_nll": 3.9, "validation_ppl": 49.4, "seconds": 12.5})
        if scores is not None:
            run.save("evaluation", {CORPUS: scores})
            for strategy in (*scores["completion"], "human"):
                records = [
                    {"id": i, "prefix": f"Prefix {i}", "continuation": f"{LOOP} {name} {strategy} {HOSTILE}"}
                    for i in range(4)
                ]
                (run.path / "samples").mkdir(exist_ok=True)
                lines = "".join(json.dumps(record) + "\n" for record in records)
                (run.path / "samples" / samples_name(CORPUS, strategy)).write_text(lines)
        return run

    return make


@pytest.fixture
def comparison() -> Comparison:
    """Four models, one decoding, human text: figures of the paper's test table."""
    texts = {"MLE": LOOP, "SG γ=0.2": " a quiet harbour lay north of the town.", "Human": " it rained for days."}

    def samples(label: str) -> list[Sample]:
        return [Sample(f"In the year {1900 + i} the", f"{texts[label]} {HOSTILE}") for i in range(9)]

    log = [
        {"step": s, "validation_nll": v, "seen_mass": m} for s, v, m in ((1, 4.0, 0.5), (2, 3.0, 0.4), (3, 3.5, 0.3))
    ]
    rows = [
        System("MLE", {"ppl": 13.24, "rep_1": 0.661, "rep_2": 0.5, "rep_3": 0.424, "uniq_w": 16830}, family="mle",
               deviations={"ppl": 0.02, "rep_1": 0.003}, runs=3, log=log, samples=samples("MLE")),
        System("UL α=1.0", {"ppl": 16.06, "rep_1": 0.559, "rep_2": 0.363, "rep_3": 0.291, "uniq_w": 19110}, family="ul",
               strength=1.0, log=log),
        System("SG γ=0.2", {"ppl": 14.2, "rep_1": 0.443, "rep_2": 0.215, "rep_3": 0.143, "uniq_w": 22250}, family="sg",
               strength=0.2, deviations={"ppl": 0.05, "rep_1": 0.006}, runs=3, log=log, samples=samples("SG γ=0.2")),
        System("SG γ=0.5", {"ppl": 13.53, "rep_1": 0.561, "rep_2": 0.389, "rep_3": 0.331, "uniq_w": 19130}, family="sg",
               strength=0.5),
        System("MLE, decoded with γ=0.2", {"ppl": 14.9, "rep_1": 0.45, "rep_2": 0.22, "rep_3": 0.15, "uniq_w": 21900},
               "decoded", "mle", 0.2),
        System("Human", {"rep_1": 0.325, "rep_2": 0.076, "rep_3": 0.03, "uniq_w": 27598}, "human",
               samples=samples("Human")),
    ]  # fmt: skip
    return Comparison(rows, CORPUS, ["A note with <b>signs</b>."])
