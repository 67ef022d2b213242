"""`python -m paper NAME…`: tables and figures of the paper, computed here and set beside what it prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from scalegrad.cli import new_app, run
from scalegrad.extras import MissingExtra, need
from scalegrad.options import AsJson, option
from scalegrad.runs.atomic import plain
from scalegrad.runs.terminal import bars, quiet_transformers

app = new_app("python -m paper")


@app.default
def command(
    *name: str,
    list_them: Annotated[
        bool, option(name="--list", help="List the experiments, the tables and figures they redo, and their times.")
    ] = False,
    scale: Annotated[
        str, option(help="smoke: seconds on a CPU. gpu: minutes on one GPU. paper: the paper's own sizes.")
    ] = "smoke",
    out: Annotated[Path | None, option(help="Folder of runs and results (default: reproduction/SCALE).")] = None,
    seeds: Annotated[int | None, option(help="How often to train each model (default: as the scale says).")] = None,
    model: Annotated[
        str | None, option(help="A hub name, a folder or a .gguf file (default: as the scale says).")
    ] = None,
    ptb: Annotated[Path | None, option(help="The Penn Treebank's test text.")] = None,
    imdb: Annotated[Path | None, option(help="IMDB reviews: a folder, .jsonl or .csv.")] = None,
    data: Annotated[
        tuple[str, ...],
        option(help="Where a corpus is that cannot be shipped (see --list), as NAME=PATH. May be repeated."),
    ] = (),
    devices: Annotated[
        str | None, option(help="GPUs to use, a process for each named: 0,1. With 0,0,0 three share one.")
    ] = None,
    gamma: Annotated[float, option(help="gradients: ScaleGrad's γ, in (0, 1]; smaller pushes harder.")] = 0.2,
    alpha: Annotated[float, option(help="gradients: unlikelihood's α, from 0.")] = 1.0,
    sentence: Annotated[str | None, option(help="novel-set: a sentence of your own.")] = None,
    only_done: Annotated[
        bool, option(help="Train nothing: show what OUT holds, say from another machine or a stopped run.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Do parts of the paper again: this machine's figures beside the paper's, as tables, Markdown and one HTML page.

    Experiments share their trained models. Stopped at any moment, the same command goes on where it was.

    Example: python -m paper wikitext decoding --scale gpu --out reproduction

    Parameters
    ----------
    name
        Experiments by name (see --list), or all.
    """
    for module in ("transformers", "accelerate", "jinja2", "matplotlib"):
        need(module, extra="paper")  # before the work, not after it
    if list_them:
        _print_list(as_json)
        return 0
    if not name:
        raise ValueError("name an experiment (python -m paper --list shows them), or all")
    quiet_transformers()
    from rich.console import Console

    from paper import NotGiven, Setup
    from paper.catalogue import find, reproduce, train
    from paper.pages.terminal import print_reproduction

    chosen = find(name)
    folder = out or Path("reproduction") / scale
    corpora = _data(data, ptb=ptb, imdb=imdb)
    setup = Setup(
        scale,
        folder,
        model,
        seeds,
        corpora,
        _devices(devices),
        gamma=gamma,
        alpha=alpha,
        sentence=sentence,
        only_done=only_done,
    )
    found, left_out, failed = [], list[str](), list[str]()
    if len(chosen) > 1:
        with suppress(ValueError, OSError, MissingExtra), bars() as told:  # whose mistake it is says so below
            train(chosen, replace(setup, progress=told))
    for place, experiment in enumerate(chosen):
        try:
            with bars() as told:
                if len(chosen) > 1:
                    told(f"experiments · {experiment.name}", place, len(chosen))
                found.append(reproduce(experiment, replace(setup, progress=told)))
        except (ValueError, OSError, MissingExtra) as mistake:
            if len(chosen) == 1:
                raise
            asked = experiment.name in name or not isinstance(mistake, NotGiven)
            (failed if asked else left_out).append(f"{experiment.name}: {mistake}")
        else:
            if not as_json:
                print_reproduction(found[-1], Console())
    if as_json:
        print(json.dumps(plain([one.as_dict() for one in found]), ensure_ascii=False, indent=2))
    elif found:
        print(f"All of it on one page: {folder / 'report.html'}")
    for sentence in (*(f"left out: {one}" for one in left_out), *(f"paper: {one}" for one in failed)):
        print(sentence, file=sys.stderr)
    return 2 if failed else 0


def _data(texts: Sequence[str], **named: Path | None) -> dict[str, str]:
    """Corpora by name: --data NAME=PATH, and those with an option of their own."""
    from paper.catalogue import DATA

    found = {name: str(path) for name, path in named.items() if path is not None}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (equals and path) or name not in DATA or name in found:
            raise ValueError(f"--data must be NAME=PATH, each name once, one of {', '.join(DATA)}; not {text!r}")
        found[name] = path
    return found


def _devices(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _print_list(as_json: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from paper.catalogue import DATA, EXPERIMENTS, TAKES, TIMES
    from paper.pages import where

    if as_json:
        told = [
            {"name": e.name, "title": e.title, "shows": list(e.shows), "takes": TAKES[e.name]._asdict()}
            for e in EXPERIMENTS
        ]
        print(json.dumps({"experiments": told, "data": DATA}, ensure_ascii=False, indent=2))
        return
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("name", "what it is", "in the paper"):
        table.add_column(name, no_wrap=name == "name")
    for name in ("smoke", "gpu", "paper"):
        table.add_column(name, justify="right", no_wrap=True)
    for e in EXPERIMENTS:
        table.add_row(e.name, e.title, where(e.shows), *TAKES[e.name])
    console.print(table)
    console.print(Text(TIMES, style="dim"))
    console.print(
        Text(f"--data NAME=PATH brings {'; '.join(f'{name}: {what}' for name, what in DATA.items())}.", "dim")
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; a mistake of the user's ends in one sentence and exit code 2."""
    run(app, argv)


if __name__ == "__main__":
    main()
