"""`scalegrad sweep`: grids of γ and α, the sensitivity plots, and which γ to take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App

from scalegrad.extras import need
from scalegrad.lab.sweep import Sweep
from scalegrad.models.pretrained import check_causal
from scalegrad.options import FLAT, AsJson, Overwrite, fill, option
from scalegrad.runs.terminal import bars, quiet_transformers

app = App(name="sweep", config=lambda _, __, arguments: fill(arguments, {"tracker": ("none",)}, "sweep"))


@app.default
def command(
    sweep: Annotated[Sweep, FLAT],
    *,
    out: Annotated[Path, option(help="Folder of the runs, the plots and the report.")],
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train MLE, each γ and each α, and say which γ comes nearest to human text within a budget of perplexity.

    Stopped at any moment, the same command goes on. On several GPUs, each does a run at a time.

    Example: scalegrad sweep gpt2 wikitext-2 --gamma 0.2,0.5,0.8 --alpha 1.0 --seeds 3 --budget 5% --out sweeps/gpt2
    """
    from scalegrad.tasks.open_ended.corpora import find_corpus
    from scalegrad.tasks.open_ended.data import check_sources

    check_sources(sweep.config.data)
    find_corpus(sweep.corpus)
    check_causal(sweep.config.model)
    for module in ("transformers", "accelerate", "jinja2", "matplotlib", "pandas"):
        need(module, extra="demo")  # before the work, not after it
    quiet_transformers()
    from rich.console import Console

    from scalegrad.lab.sweep import run_sweep, write_results
    from scalegrad.results.comparison.terminal import print_comparison

    with bars() as progress:
        results = run_sweep(sweep, out, overwrite=overwrite, progress=progress)
    written = write_results(results, out)
    if as_json:
        print(json.dumps(results.as_dict(), ensure_ascii=False, indent=2))
        return
    print_comparison(results.comparison, Console(), said=[results.recommendation.sentence])
    print(f"In {written['page']}, with the plots beside it")
