"""`scalegrad evaluate`: the open-ended columns of the paper's tables for a saved model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from scalegrad import objectives
from scalegrad.decoding.strategies import parse
from scalegrad.extras import need
from scalegrad.models.pretrained import check_causal, is_run
from scalegrad.options import FLAT, AsJson, Loading, Model, Overwrite, option
from scalegrad.runs.terminal import bars, quiet_transformers, status
from scalegrad.tasks.open_ended.config import Evaluation

_EVALUATION, _LOADING = Evaluation(), Loading()


def command(
    model: Model,
    *,
    evaluation: Annotated[Evaluation, FLAT] = _EVALUATION,
    loading: Annotated[Loading, FLAT] = _LOADING,
    samples: Annotated[Path | None, option(help="Folder to keep the texts in (default: a run's own).")] = None,
    out: Annotated[Path | None, option(help="Write the figures to this JSON file as well.")] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Perplexity and repetition of a model, as the paper measures them, beside human text.

    A run's folder keeps the figures (evaluation.json) and texts (samples/); stopped, the same command goes on.

    Example: scalegrad evaluate runs/sg --strategy greedy --strategy greedy,gamma=0.2 --prefixes 120 --chunks 20
    """
    strategies = [parse(text) for text in evaluation.strategy]
    from scalegrad.runs import Run, check_writable_folder, write_json
    from scalegrad.tasks.open_ended.corpora import find_corpus

    texts = [find_corpus(name, evaluation.seed) for name in evaluation.corpus]
    check_causal(model)
    if out is not None:
        check_writable_folder(out.parent, "out")
    need("transformers", extra="complete")
    quiet_transformers()
    from scalegrad import decoding
    from scalegrad.models.start import start_sentence
    from scalegrad.tasks.open_ended.evaluation import evaluate, evaluate_run, saved_gamma
    from scalegrad.tasks.open_ended.kept_figures import lost

    run = Run.open(Path(model).expanduser()) if is_run(model) else None
    with status(f"loading {model}"):
        network, tokenizer = decoding.load(model, loading.device, loading.dtype, loading.trust_remote_code)
    options: dict[str, Any] = {
        "strategies": strategies,
        "gamma": saved_gamma(network.config) if evaluation.calibrate is None else evaluation.calibrate,
        "prefixes": evaluation.prefixes,
        "chunks": evaluation.chunks,
        "new_tokens": evaluation.new_tokens,
        "start": evaluation.start,
        "seed": evaluation.seed,
        "batch": evaluation.batch,
        "overwrite": overwrite,
    }
    before = run.load("evaluation") if run and (run.path / "evaluation.json").is_file() else {}
    found = {}
    with bars() as progress:
        for text in texts:
            if run and samples is None:
                found[text.name] = evaluate_run(run, network, tokenizer, text, **options, progress=progress)
            else:
                found[text.name] = evaluate(
                    network, tokenizer, text, **options, samples=samples, name=model, progress=progress
                )
    if out is not None:
        write_json(out, found)
    if run and samples is None:
        for name, figures in found.items():
            if gone := lost(before.get(name, {}), figures):
                print(f"No longer in evaluation.json, measured otherwise: {name}: {'; '.join(gone)}", file=sys.stderr)
    symbol = next(iter(found.values()))["protocol"]["start"]
    print(start_sentence(tokenizer, evaluation.start, symbol), file=sys.stderr)
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _print(found, model, getattr(network.config, "scalegrad", None))
    if run and samples is None:
        print(f"In {run.path / 'evaluation.json'}; compare runs with: scalegrad report FOLDER…")


def _print(found: dict[str, Any], model: str, record: dict[str, Any] | None) -> None:
    from rich.console import Console

    from scalegrad.results.comparison import Comparison, human_row, rows_of
    from scalegrad.results.comparison.terminal import print_figures

    objective = objectives.of_record(record) if record else None
    trained = str(objective or "")
    label = objective.label if objective else Path(model).name
    console = Console()
    for name, evaluation in found.items():
        rows = rows_of(label, trained, evaluation)
        comparison = Comparison([*rows, *human_row(evaluation)], name, evaluation["notes"])
        print_figures(comparison, console)
