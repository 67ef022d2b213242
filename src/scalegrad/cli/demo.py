"""`scalegrad demo`: the paper in minutes, on a CPU, without a download."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

from scalegrad.extras import need
from scalegrad.lab.demo import Demo
from scalegrad.models.pretrained import check_causal
from scalegrad.options import FLAT, AsJson, Overwrite, option
from scalegrad.runs.terminal import bars, quiet_transformers

_DEMO = Demo()


def command(
    demo: Annotated[Demo, FLAT] = _DEMO,
    *,
    out: Annotated[Path, option(help="Folder of the runs and of report.html.")] = Path("demo"),
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune one model by likelihood (MLE), unlikelihood (UL) and ScaleGrad (SG), and compare what they write.

    Minutes on two cores. Stopped at any moment, the same command goes on where it was.

    Example: scalegrad demo --out demo --gamma 0.2
    """
    sweep = demo.sweep()
    check_causal(demo.model)
    for module in ("transformers", "accelerate", "jinja2", "matplotlib", "pandas"):
        need(module, extra="demo")  # before the work, not after it
    quiet_transformers()
    from rich.console import Console

    from scalegrad.lab.sweep import run_sweep
    from scalegrad.results.comparison import write_page
    from scalegrad.results.comparison.terminal import print_comparison
    from scalegrad.runs import write_lines

    began = time.perf_counter()
    with bars() as progress:
        results = run_sweep(sweep, out, overwrite=overwrite, progress=progress)
    write_page(results.comparison, out / "report.html")
    write_lines(out / "results.jsonl", [row.as_dict() for row in results.comparison.rows])
    if as_json:
        print(json.dumps(results.as_dict(), ensure_ascii=False, indent=2))
        return
    print_comparison(results.comparison, Console())
    print(f"{time.perf_counter() - began:.0f} s. The page to look at: {out / 'report.html'}")
