"""`scalegrad evaluate`: the open-ended columns of the paper's tables for a saved model."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from scalegrad import objectives
from scalegrad.extras import need
from scalegrad.runs.terminal import Device, Dtype, Start, Trust, bars, quiet_transformers, read_batch, status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scalegrad.runs import Run
    from scalegrad.tasks.open_ended.evaluation import Part

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
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the rows as well, a line of JSON each.")]
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

    A run's folder keeps the figures (results.jsonl) and texts (samples/); stopped, the same command goes on.

    Example: scalegrad evaluate runs/sg --strategy greedy --strategy greedy,gamma=0.2 --prefixes 120 --chunks 20
    """
    from scalegrad.models.start import check_start

    check_start(start)
    for module in ("transformers", "pandas"):
        need(module, extra="complete")
    quiet_transformers()
    from scalegrad import decoding
    from scalegrad.models.start import start_sentence
    from scalegrad.runs import check_writable_folder, write_rows
    from scalegrad.tasks.open_ended.corpora import find_corpus
    from scalegrad.tasks.open_ended.evaluation import Options, evaluate, evaluate_run, saved_gamma

    options = Options(
        tuple(strategy or ["greedy"]), gamma, chunks, prefixes, new_tokens, read_batch(batch), seed, start
    )
    texts = [find_corpus(name, seed) for name in corpus or ["wikitext-103"]]
    if out is not None:
        check_writable_folder(out.parent, "--out")  # before the work, not after it
    run = _run(model)
    with status(f"loading {model}"):
        network, tokenizer = decoding.load(str(run.model_path) if run else model, device, dtype, trust_remote_code)
    if gamma is None:
        options = replace(options, gamma=saved_gamma(network.config))
    about = run.about() if run else _about(model, network.config)
    parts = []
    with bars() as progress:
        for text in texts:
            if run and samples is None:
                parts += evaluate_run(run, network, tokenizer, text, options, overwrite=overwrite, progress=progress)
            else:
                parts += evaluate(
                    network, tokenizer, text, options, samples=samples, name=model, about=about, overwrite=overwrite,
                    progress=progress,
                )  # fmt: skip
    rows = [row for part in parts for row in part.rows]
    if out is not None:
        out.unlink(missing_ok=True)
        write_rows(out, rows)
    symbol = next((part.settings["start"] for part in parts if "start" in part.settings), None)
    print(start_sentence(tokenizer, start, symbol), file=sys.stderr)
    if as_json:
        notes = list(dict.fromkeys(note for part in parts for note in part.notes))
        print(json.dumps({"rows": [row.as_dict() for row in rows], "notes": notes}, indent=2, ensure_ascii=False))
        return
    _print(parts)
    if run and samples is None:
        print(f"In {run.path / 'results.jsonl'}; compare runs with: scalegrad report FOLDER…")


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
    from scalegrad.results.comparison import compare
    from scalegrad.results.comparison.terminal import print_figures
    from scalegrad.results.frame import frame

    for corpus, split in dict.fromkeys((part.settings["corpus"], part.settings["split"]) for part in parts):
        here = [part for part in parts if (part.settings["corpus"], part.settings["split"]) == (corpus, split)]
        notes = dict.fromkeys(note for part in here for note in part.notes)
        comparison = compare(frame(row for part in here for row in part.rows))
        print_figures(replace(comparison, notes=list(notes)), Console())
