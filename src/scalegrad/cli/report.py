"""`scalegrad report`: run folders side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scalegrad.extras import need

Folders = Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Runs, or folders that hold runs.")]
Corpus = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Which corpus to show, such as wikitext-103:valid, of those the runs were scored on."
    ),
]
Html = Annotated[Path | None, typer.Option(metavar="OUT", help="Write the page: table, plots and texts side by side.")]
Markdown = Annotated[Path | None, typer.Option(metavar="OUT", help="Write the table as Markdown.")]
Plots = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the plots as PNG.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]


def command(
    folders: Folders,
    corpus: Corpus = None,
    html: Html = None,
    markdown: Markdown = None,
    plots: Plots = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: their figures beside human text, training curves, and texts side by side.

    Runs that differ by their seed alone are merged into one row, mean ± deviation.

    Example: scalegrad report runs/mle runs/sg --html report.html
    """
    need("pandas", extra="report")
    from scalegrad.results import comparison as side_by_side
    from scalegrad.results.comparison.terminal import markdown as as_markdown
    from scalegrad.results.comparison.terminal import print_comparison
    from scalegrad.results.figure import save_figure
    from scalegrad.results.frame import find_runs, load
    from scalegrad.runs import check_writable_folder, write_text

    for path in (html, markdown):
        if path is not None:
            check_writable_folder(path.parent, "folder")
    name, _, split = (corpus or "").partition(":")
    runs = find_runs(folders)
    compared = side_by_side.compare(load([run.path for run in runs]), name or None, split or None, runs=runs)
    if html is not None:
        side_by_side.write_page(compared, html)
    if markdown is not None:
        write_text(markdown, as_markdown(compared))
    if plots is not None:
        check_writable_folder(plots, "plots")
        for plot in side_by_side.plots(compared):
            save_figure(plot.figure, plots / f"{plot.name}.png")
    if as_json:
        rows = [row.as_dict() for row in compared.rows]
        print(json.dumps({"rows": rows, "notes": list(compared.notes)}, ensure_ascii=False, indent=2))
        return
    print_comparison(compared, Console())
    for path in (html, markdown, plots):
        if path is not None:
            print(f"In {path}")
