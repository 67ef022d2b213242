"""`scalegrad evaluate`: the open-ended columns of the paper's tables for a saved model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from scalegrad import objectives
from scalegrad.extras import need
from scalegrad.runs.terminal import Device, Dtype, Start, Trust, bars, quiet_transformers, read_batch, status

if TYPE_CHECKING:
    from scalegrad.runs import Run

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A run's folder, a model's folder, a hub name, a .gguf file, or base, which is shipped."
    ),
]
Corpora = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        metavar="NAME",
        help="wikitext-103, wikitext-103:valid, ptb:PATH, imdb:PATH or a file. May be repeated.",
    ),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option("--strategy", "-s", help="How to decode, such as greedy or greedy,gamma=0.2. May be repeated."),
]
Gamma = Annotated[
    float | None, typer.Option(help="γ of the calibrated perplexity (default: what the model was trained with).")
]
Prefixes = Annotated[int | None, typer.Option(help="Continue only this many prefixes, evenly spread; 0: none.")]
Chunks = Annotated[int | None, typer.Option(help="Predict only this many chunks, evenly spread; 0: none.")]
New = Annotated[int, typer.Option("--new-tokens", help="Tokens to generate after each prefix.")]
Samples = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where to keep the texts (default: in a run's own folder).")
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figures as JSON as well.")]
Seed = Annotated[int, typer.Option(help="Seed of sampled texts, and of the draw of IMDB reviews.")]
Batch = Annotated[str, typer.Option(help="Chunks or prefixes at a time, or auto: what fits into memory.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Make texts anew that were made with other settings.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def command(
    model: Model,
    corpus: Corpora = None,
    strategy: Strategies = None,
    gamma: Gamma = None,
    prefixes: Prefixes = None,
    chunks: Chunks = None,
    new_tokens: New = 100,
    samples: Samples = None,
    out: Out = None,
    start: Start = "auto",
    seed: Seed = 0,
    batch: Batch = "auto",
    device: Device = "auto",
    dtype: Dtype = "auto",
    trust_remote_code: Trust = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Perplexity and repetition of a model, as the paper measures them, beside human text.

    A run's folder keeps the figures (evaluation.json) and texts (samples/); stopped, the same command goes on.

    Example: scalegrad evaluate runs/sg --strategy greedy --strategy greedy,gamma=0.2 --prefixes 120 --chunks 20
    """
    size = read_batch(batch)
    from scalegrad.models.start import check_start

    check_start(start)
    need("transformers", extra="complete")
    quiet_transformers()
    from scalegrad import decoding
    from scalegrad.models.start import start_sentence
    from scalegrad.runs import check_writable_folder, write_json
    from scalegrad.tasks.open_ended.corpora import find_corpus
    from scalegrad.tasks.open_ended.evaluation import evaluate, evaluate_run, saved_gamma
    from scalegrad.tasks.open_ended.kept_figures import lost

    with bars() as told:
        texts = [find_corpus(name, seed, progress=told) for name in corpus or ["wikitext-103"]]
    if out is not None:
        check_writable_folder(out.parent, "--out")  # before the work, not after it
    run = _run(model)
    with status(f"loading {model}"):
        network, tokenizer = decoding.load(str(run.model_path) if run else model, device, dtype, trust_remote_code)
    options: dict[str, Any] = {
        "strategies": tuple(strategy or ["greedy"]),
        "gamma": saved_gamma(network.config) if gamma is None else gamma,
        "prefixes": prefixes,
        "chunks": chunks,
        "new_tokens": new_tokens,
        "start": start,
        "seed": seed,
        "batch": size,
        "overwrite": overwrite,
    }
    before = run.load("evaluation") if run and (run.path / "evaluation.json").is_file() else {}
    found = {}
    with bars() as told:
        for text in texts:
            if run and samples is None:
                found[text.name] = evaluate_run(run, network, tokenizer, text, **options, progress=told)
            else:
                found[text.name] = evaluate(
                    network, tokenizer, text, **options, samples=samples, name=model, progress=told
                )
    if out is not None:
        write_json(out, found)
    if run and samples is None:
        for name, figures in found.items():
            if gone := lost(before.get(name, {}), figures):
                print(f"No longer in evaluation.json, measured otherwise: {name}: {'; '.join(gone)}", file=sys.stderr)
    symbol = next(iter(found.values()))["protocol"]["start"]
    print(start_sentence(tokenizer, start, symbol), file=sys.stderr)
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _print(found, model, getattr(network.config, "scalegrad", None))
    if run and samples is None:
        print(f"In {run.path / 'evaluation.json'}; compare runs with: scalegrad report FOLDER…")


def _run(model: str) -> Run | None:
    """The run that `model` is the folder of, if it is one."""
    from scalegrad.runs import Run

    folder = Path(model).expanduser()
    if not (folder / "config.json").is_file() or not any(
        (folder / name).exists() for name in ("metrics.jsonl", "done.json", "environment.json")
    ):
        return None
    run = Run.open(folder)
    if not run.finished:
        raise ValueError(f"the run in {folder} has not finished; train it to its end first (the same command goes on)")
    return run


def _print(found: dict[str, Any], model: str, record: dict[str, Any] | None) -> None:
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
