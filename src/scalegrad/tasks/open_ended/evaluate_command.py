"""`scalegrad evaluate`: the open-ended columns of the paper's tables for a saved model."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from scalegrad import objectives
from scalegrad.extras import need
from scalegrad.models.pretrained import Loading, check_causal, is_run
from scalegrad.options import FLAT, AsJson, Model, Overwrite, SkipBad, option
from scalegrad.runs.terminal import bars, quiet_transformers, status
from scalegrad.tasks.open_ended.config import Evaluation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalegrad.tasks.open_ended.evaluation import Part

_EVALUATION, _LOADING = Evaluation(), Loading()


def command(
    model: Model,
    *,
    evaluation: Annotated[Evaluation, FLAT] = _EVALUATION,
    loading: Annotated[Loading, FLAT] = _LOADING,
    samples: Annotated[Path | None, option(help="Folder to keep the texts in (default: a run's own).")] = None,
    out: Annotated[Path | None, option(help="Write the rows to this JSONL file as well.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Perplexity and repetition of a model, as the paper measures them, beside human text.

    A run's folder keeps the figures (results.jsonl) and texts (samples/); stopped, the same command goes on.

    Example: scalegrad evaluate runs/sg --strategy greedy --strategy greedy,gamma=0.2 --prefixes 120 --chunks 20
    """
    from scalegrad.data import Problems
    from scalegrad.runs import Run, check_writable_folder, write_rows
    from scalegrad.tasks.open_ended.corpora import find_corpus

    problems = Problems(skip_bad)
    with bars() as progress:
        texts = [find_corpus(name, evaluation.seed, problems=problems, progress=progress) for name in evaluation.corpus]
    problems.report()
    check_causal(model)
    if out is not None:
        check_writable_folder(out.parent, "out")
    for module in ("transformers", "pandas"):
        need(module, extra="complete")
    quiet_transformers()
    from scalegrad import decoding
    from scalegrad.models.pretrained import start_sentence
    from scalegrad.tasks.open_ended.evaluation import evaluate, evaluate_run, saved_gamma

    run = Run.open(Path(model).expanduser()) if is_run(model) else None
    with status(f"loading {model}"):
        network, tokenizer = decoding.load(model, loading.device, loading.dtype, loading.trust_remote_code)
    if evaluation.calibrate is None:
        evaluation = replace(evaluation, calibrate=saved_gamma(network.config))
    about = run.about() if run else _about(model, network.config)
    parts = []
    with bars() as progress:
        for text in texts:
            if run and samples is None:
                parts += evaluate_run(run, network, tokenizer, text, evaluation, overwrite=overwrite, progress=progress)
            else:
                parts += evaluate(
                    network, tokenizer, text, evaluation, samples=samples, name=model, about=about,
                    overwrite=overwrite, progress=progress,
                )  # fmt: skip
    rows = [row for part in parts for row in part.rows]
    if out is not None:
        out.unlink(missing_ok=True)
        write_rows(out, rows)
    symbol = next((part.settings["start"] for part in parts if "start" in part.settings), None)
    print(start_sentence(tokenizer, evaluation.start, symbol), file=sys.stderr)
    if as_json:
        notes = list(dict.fromkeys(note for part in parts for note in part.notes))
        print(json.dumps({"rows": [row.as_dict() for row in rows], "notes": notes}, indent=2, ensure_ascii=False))
        return
    _print(parts)
    if run and samples is None:
        print(f"In {run.path / 'results.jsonl'}; compare runs with: scalegrad report FOLDER…")


def _about(model: str, config: Any) -> dict[str, Any]:
    """What rows say of a model that is no run: its name, and what it was trained for, if it says so."""
    record = getattr(config, "scalegrad", None)
    objective = objectives.of_record(record) if record else None
    return {
        "model": model,
        "objective": objective.name if objective else None,
        "strength": objective.amount if objective else None,
    }


def _print(parts: Sequence[Part]) -> None:
    """A table for each corpus."""
    from rich.console import Console

    from scalegrad.results.comparison import compare
    from scalegrad.results.comparison.terminal import print_figures
    from scalegrad.results.frame import frame

    for corpus, split in dict.fromkeys((part.settings["corpus"], part.settings["split"]) for part in parts):
        here = [part for part in parts if (part.settings["corpus"], part.settings["split"]) == (corpus, split)]
        notes = dict.fromkeys(note for part in here for note in part.notes)
        comparison = compare(frame(row for part in here for row in part.rows))
        print_figures(replace(comparison, notes=list(notes)), Console())
