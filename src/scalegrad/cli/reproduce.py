"""`scalegrad reproduce NAME…`: tables and figures of the paper, computed here and set beside what it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from scalegrad._extras import MissingExtra, need
from scalegrad.cli.progress import Told, bars, quiet_transformers

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Experiments (see --list), or all.")]
ListThem = Annotated[bool, typer.Option("--list", help="List the experiments and what of the paper they show.")]
Scale = Annotated[str, typer.Option(help="smoke: seconds, on a CPU. gpu: minutes, on one. paper: as the paper did it.")]
Out = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where runs and results go (default: reproduction/SCALE).")
]
Seeds = Annotated[int | None, typer.Option(help="Runs of each model, in place of the scale's own number.")]
Model = Annotated[str | None, typer.Option(help="In place of the scale's own: a hub name, a folder or a .gguf file.")]
Ptb = Annotated[Path | None, typer.Option("--ptb", metavar="FILE", help="The Penn Treebank's test text.")]
Imdb = Annotated[Path | None, typer.Option("--imdb", metavar="PATH", help="IMDB reviews: a folder or a file.")]
Devices = Annotated[
    str | None, typer.Option(metavar="LIST", help="GPUs, a process each: 0,1; 0,0,0 shares one between three.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]


def command(
    names: Names = None,
    list_them: ListThem = False,
    scale: Scale = "smoke",
    out: Out = None,
    seeds: Seeds = None,
    model: Model = None,
    ptb: Ptb = None,
    imdb: Imdb = None,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Do parts of the paper again: this machine's figures beside the paper's, as tables, Markdown and one HTML page.

    Experiments share their trained models. Stopped at any moment, the same command goes on where it was.

    Example: scalegrad reproduce wikitext decoding --scale gpu --out reproduction
    """
    if list_them:
        _print_list(as_json)
        return
    if not names:
        raise ValueError("name an experiment (scalegrad reproduce --list shows them), or all")
    for module, extra in (("transformers", "train"), ("jinja2", "report"), ("matplotlib", "report")):
        need(module, extra=extra)  # before the work, not after it
    quiet_transformers()
    from scalegrad.lab.reproduction import Setup
    from scalegrad.lab.reproduction.catalogue import find, reproduce
    from scalegrad.report.reproduction.terminal import print_reproduction

    chosen = find(names)
    folder = out or Path("reproduction") / scale
    data = {name: str(path) for name, path in (("ptb", ptb), ("imdb", imdb)) if path is not None}
    found, failed = [], []
    for place, experiment in enumerate(chosen):
        with bars() as told:
            setup = Setup(scale, folder, model, seeds, data, _devices(devices), _of(told, place, len(chosen)))
            try:
                found.append(reproduce(experiment, setup))
            except (ValueError, OSError, MissingExtra) as mistake:
                if len(chosen) == 1:
                    raise
                failed.append(f"{experiment.name}: {mistake}")
        if found and not as_json and found[-1].name == experiment.name:
            print_reproduction(found[-1], Console())
    if as_json:
        print(json.dumps([one.as_dict() for one in found], ensure_ascii=False, indent=2, default=str))
    elif found:
        print(f"All of it on one page: {folder / 'report.html'}")
    for sentence in failed:
        print(f"scalegrad: {sentence}", file=sys.stderr)
    if failed:
        raise typer.Exit(2)


def _of(told: Told | None, place: int, count: int) -> Told | None:
    if told is not None and count > 1:
        told("experiments", place, count)
    return told


def _devices(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _print_list(as_json: bool) -> None:
    from scalegrad.lab.reproduction.catalogue import EXPERIMENTS
    from scalegrad.report.reproduction import where

    if as_json:
        told = [{"name": e.name, "title": e.title, "shows": list(e.shows)} for e in EXPERIMENTS]
        print(json.dumps(told, ensure_ascii=False, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("name", "what it is", "in the paper"):
        table.add_column(name)
    for experiment in EXPERIMENTS:
        table.add_row(experiment.name, experiment.title, where(experiment.shows))
    Console().print(table)
