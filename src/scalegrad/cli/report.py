"""`scalegrad report`: run folders side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from scalegrad.extras import need
from scalegrad.options import AsJson, Html, option


def command(
    *folder: Path,
    corpus: Annotated[str | None, option(help="Which corpus to show, such as wikitext-103:valid.")] = None,
    html: Html = None,
    markdown: Annotated[Path | None, option(help="Write the table as Markdown to this file.")] = None,
    plots: Annotated[Path | None, option(help="Write the plots as PNG to this folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: their figures beside human text, training curves, and texts side by side.

    Runs that differ by their seed alone are merged into one row, mean ± deviation.

    Example: scalegrad report runs/mle runs/sg --html report.html

    Parameters
    ----------
    folder
        Runs, or folders that hold runs.
    """
    if not folder:
        raise ValueError("FOLDER is missing; expected a run, or a folder that holds runs")
    for one in folder:
        if not one.exists():
            raise FileNotFoundError(f"folder: there is no {one}")
    need("pandas", extra="report")
    from rich.console import Console

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
    runs = find_runs(folder)
    comparison = side_by_side.compare(load([run.path for run in runs]), name or None, split or None, runs=runs)
    if html is not None:
        side_by_side.write_page(comparison, html)
    if markdown is not None:
        write_text(markdown, as_markdown(comparison))
    if plots is not None:
        check_writable_folder(plots, "plots")
        for plot in side_by_side.plots(comparison):
            save_figure(plot.figure, plots / f"{plot.name}.png")
    if as_json:
        rows = [row.as_dict() for row in comparison.rows]
        print(json.dumps({"rows": rows, "notes": list(comparison.notes)}, ensure_ascii=False, indent=2))
        return
    print_comparison(comparison, Console())
    for path in (html, markdown, plots):
        if path is not None:
            print(f"In {path}")
