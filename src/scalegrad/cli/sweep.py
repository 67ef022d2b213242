"""`scalegrad sweep`: grids of γ and α, the sensitivity plots, and which γ to take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from scalegrad.extras import need
from scalegrad.runs.terminal import bars, quiet_transformers
from scalegrad.tasks.open_ended.training_options import (
    MODEL_HELP,
    Accumulation,
    BatchSize,
    Epochs,
    EvaluateEvery,
    Init,
    Length,
    Overwrite,
    Precision,
    Protocol,
    Rate,
    Seed,
    Steps,
    Trust,
    Validation,
    Warmup,
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
Data = Annotated[list[str], typer.Argument(metavar="DATA", help="What to train on, as for scalegrad train.")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the runs, plots and the report go.")]
Gammas = Annotated[str, typer.Option("--gamma", metavar="LIST", help="Values of ScaleGrad's γ to try, with commas.")]
Alphas = Annotated[str, typer.Option("--alpha", metavar="LIST", help="Values of unlikelihood's α to try, or none.")]
Seeds = Annotated[int, typer.Option(help="Runs of each setting, with seeds from --seed on.")]
Budget = Annotated[
    str, typer.Option(help="What the γ to take may cost at most, as a share of MLE's perplexity: 5% or 0.05.")
]
CorpusName = Annotated[
    str, typer.Option("--corpus", metavar="NAME", help="What to score on, as for scalegrad evaluate.")
]
Prefixes = Annotated[int, typer.Option(help="Prefixes to continue, evenly spread; 0: perplexity alone.")]
Chunks = Annotated[int | None, typer.Option(help="Chunks to predict, evenly spread (default: all).")]
New = Annotated[int, typer.Option("--new-tokens", help="Tokens to generate after each prefix: a divisor of 300.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the rows and the recommendation as JSON.")]


def command(
    model: Model,
    data: Data,
    out: Out,
    gamma: Gammas = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9",
    alpha: Alphas = "0.5,1.0",
    seeds: Seeds = 3,
    budget: Budget = "5%",
    corpus: CorpusName = "wikitext-103:valid",
    prefixes: Prefixes = 120,
    chunks: Chunks = None,
    new_tokens: New = 100,
    init: Init = None,
    validation: Validation = None,
    protocol: Protocol = None,
    length: Length = None,
    max_steps: Steps = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    accumulation: Accumulation = None,
    learning_rate: Rate = None,
    warmup_steps: Warmup = None,
    evaluate_every: EvaluateEvery = None,
    precision: Precision = None,
    seed: Seed = 0,
    trust_remote_code: Trust = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train MLE, each γ and each α, and say which γ comes nearest to human text within a budget of perplexity.

    Stopped at any moment, the same command goes on. On several GPUs, each does a run at a time.

    Example: scalegrad sweep gpt2 wikitext-2 --gamma 0.2,0.5,0.8 --alpha 1.0 --seeds 3 --budget 5% --out sweeps/gpt2
    """
    given = dict(locals())  # first of all: the options as they came
    from scalegrad.lab.recommendation import read_budget

    share = read_budget(budget)
    strengths = {"gammas": _numbers("--gamma", gamma), "alphas": () if alpha == "none" else _numbers("--alpha", alpha)}
    for module in ("transformers", "accelerate", "jinja2", "matplotlib", "pandas"):
        need(module, extra="demo")  # before the work, not after it
    quiet_transformers()
    from scalegrad.lab.sweep import Sweep, run_sweep, write_results
    from scalegrad.results.comparison.terminal import print_comparison
    from scalegrad.tasks.open_ended.training import TrainConfig
    from scalegrad.training import Settings

    told = {name: value for name, value in given.items() if value is not None}
    settings = Settings(**{name: told[name] for name in Settings.names() if name in told}, trackers=())
    asked: dict[str, Any] = {name: told[name] for name in ("init", "validation", "protocol", "length") if name in told}
    config = TrainConfig(model, tuple(data), settings=settings, trust_remote_code=trust_remote_code, **asked)
    sweep = Sweep(
        config, **strengths, seeds=seeds, corpus=corpus, chunks=chunks, prefixes=prefixes, new_tokens=new_tokens
    )
    with bars() as progress:
        found = run_sweep(sweep, out, budget=share, overwrite=overwrite, progress=progress)
    written = write_results(found, out)
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    print_comparison(found.comparison, Console(), said=[found.recommendation.sentence])
    print(f"In {written['page']}, with the plots beside it")


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{option} must be numbers with commas between them, such as 0.2,0.5, not {text!r}") from None
