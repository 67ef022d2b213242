"""`scalegrad demo`: the paper in minutes, on a CPU, without a download."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scalegrad.extras import need
from scalegrad.runs.terminal import bars, quiet_transformers

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the runs and report.html go.")]
Model = Annotated[
    str, typer.Option(help="A hub name, a folder, a .gguf file, or base: the small model that is shipped.")
]
Gamma = Annotated[float, typer.Option(help="ScaleGrad's γ, and that of its twin at decoding time; in (0, 1].")]
Alpha = Annotated[float, typer.Option(help="Unlikelihood's α, 0 or more.")]
Steps = Annotated[int, typer.Option("--steps", "--max-steps", help="Training steps of each model.")]
BatchSize = Annotated[int, typer.Option(help="Sequences of 300 tokens in a step.")]
Rate = Annotated[
    float | None,
    typer.Option("--learning-rate", "--lr", help="AdamW's learning rate (default: 3e-4 for base, else 3e-5)."),
]
Prefixes = Annotated[int, typer.Option(help="Prefixes of WikiText-103's test text to continue.")]
Chunks = Annotated[int, typer.Option(help="Chunks of 1,025 tokens of that text to predict.")]
Seeds = Annotated[int, typer.Option(help="Train each model this many times, and show deviations.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew, whatever runs the folder holds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]


def command(
    out: Out = Path("demo"),
    model: Model = "base",
    gamma: Gamma = 0.2,
    alpha: Alpha = 1.0,
    steps: Steps = 100,
    batch_size: BatchSize = 8,
    learning_rate: Rate = None,
    prefixes: Prefixes = 120,
    chunks: Chunks = 24,
    seeds: Seeds = 1,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune one model by likelihood (MLE), unlikelihood (UL) and ScaleGrad (SG), and compare what they write.

    Minutes on two cores. Stopped at any moment, the same command goes on where it was.

    Example: scalegrad demo --out demo --gamma 0.2
    """
    for module in ("transformers", "accelerate", "jinja2", "matplotlib", "pandas"):
        need(module, extra="demo")  # before the work, not after it
    quiet_transformers()
    from scalegrad.lab.demo import demo
    from scalegrad.lab.sweep import run_sweep
    from scalegrad.results.comparison import write_page
    from scalegrad.results.comparison.terminal import print_comparison
    from scalegrad.runs import write_lines

    began = time.perf_counter()
    sweep = demo(
        model, gamma=gamma, alpha=alpha, steps=steps, batch_size=batch_size, learning_rate=learning_rate,
        prefixes=prefixes, chunks=chunks, seeds=seeds,
    )  # fmt: skip
    with bars() as told:
        found = run_sweep(sweep, out, overwrite=overwrite, progress=told)
    write_page(found.comparison, out / "report.html")
    write_lines(out / "results.jsonl", [row.as_dict() for row in found.comparison.rows])
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    print_comparison(found.comparison, Console())
    print(f"{time.perf_counter() - began:.0f} s. The page to look at: {out / 'report.html'}")
