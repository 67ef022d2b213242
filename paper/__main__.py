"""`python -m paper NAME…`: tables and figures of the paper, computed here and set beside what it prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scalegrad.extras import MissingExtra, need
from scalegrad.runs.terminal import quiet_transformers

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Experiments by name (see --list), or all.")]
ListThem = Annotated[
    bool, typer.Option("--list", help="List the experiments, the tables and figures they redo, and their times.")
]
Scale = Annotated[
    str, typer.Option(help="smoke: seconds on a CPU. gpu: minutes on one GPU. paper: the paper's own sizes.")
]
Out = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where runs and results go (default: reproduction/SCALE).")
]
Seeds = Annotated[int | None, typer.Option(help="How often to train each model (default: as the scale says).")]
Model = Annotated[str | None, typer.Option(help="A hub name, a folder or a .gguf file (default: as the scale says).")]
Ptb = Annotated[Path | None, typer.Option("--ptb", metavar="PATH", help="The Penn Treebank's test text.")]
Imdb = Annotated[Path | None, typer.Option("--imdb", metavar="PATH", help="IMDB reviews: a folder, .jsonl or .csv.")]
Data = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=PATH", help="Where a corpus is that cannot be shipped (see --list). May be repeated."),
]
Devices = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="GPUs to use, a process for each named: 0,1. With 0,0,0 three share one."),
]
OnlyDone = Annotated[
    bool,
    typer.Option("--only-done", help="Train nothing: show what OUT holds, say from another machine or a stopped run."),
]
Gamma = Annotated[float, typer.Option(help="gradients: ScaleGrad's γ, in (0, 1]; smaller pushes harder.")]
Alpha = Annotated[float, typer.Option(help="gradients: unlikelihood's α, from 0.")]
Sentence = Annotated[str | None, typer.Option(help="novel-set: a sentence of your own.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def command(
    names: Names = None,
    list_them: ListThem = False,
    scale: Scale = "smoke",
    out: Out = None,
    seeds: Seeds = None,
    model: Model = None,
    ptb: Ptb = None,
    imdb: Imdb = None,
    data: Data = None,
    devices: Devices = None,
    gamma: Gamma = 0.2,
    alpha: Alpha = 1.0,
    sentence: Sentence = None,
    only_done: OnlyDone = False,
    as_json: AsJson = False,
) -> None:
    """Do parts of the paper again: this machine's figures beside the paper's, as tables and one HTML page.

    Experiments share their trained models. Stopped at any moment, the same command goes on where it was.

    Example: python -m paper wikitext decoding --scale gpu --out reproduction
    """
    for module in ("transformers", "accelerate", "jinja2", "matplotlib"):
        need(module, extra="paper")  # before the work, not after it
    if list_them:
        _print_list(as_json)
        return
    if not names:
        raise ValueError("name an experiment (python -m paper --list shows them), or all")
    quiet_transformers()
    from paper.catalogue import run_all
    from paper.outcome import Setup

    setup = Setup(
        scale,
        out or Path("reproduction") / scale,
        model,
        seeds,
        _data(data or [], ptb=ptb, imdb=imdb),
        _devices(devices),
        gamma=gamma,
        alpha=alpha,
        sentence=sentence,
        only_done=only_done,
    )
    if code := run_all(names, setup, as_json):
        raise typer.Exit(code)


def _data(given: list[str], **named: Path | None) -> dict[str, str]:
    """Corpora by name: --data NAME=PATH, and those with an option of their own."""
    from paper.catalogue import DATA

    found = {name: str(path) for name, path in named.items() if path is not None}
    for text in given:
        name, equals, path = text.partition("=")
        if not (equals and path) or name not in DATA or name in found:
            raise ValueError(f"--data must be NAME=PATH, each name once, one of {', '.join(DATA)}; not {text!r}")
        found[name] = path
    return found


def _devices(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _print_list(as_json: bool) -> None:
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


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
app.command()(command)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; a mistake of the user's ends in one sentence and exit code 2."""
    try:
        app(args=None if argv is None else list(argv), prog_name="python -m paper")
    except (ValueError, OSError, MissingExtra) as mistake:
        print(f"paper: {mistake}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
