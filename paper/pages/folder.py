"""The folder of a reproduction: results.json, results.md and plots/. The page is made from such folders."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paper.pages.markdown import markdown
from paper.pages.result import Picture, Reproduction, Shown
from scalegrad.results.comparison import Plot, System
from scalegrad.results.comparison.page import spread_prefixes
from scalegrad.results.comparison.systems import spoken_of
from scalegrad.results.comparison.themed_svg import inline_svg
from scalegrad.results.figure import save_figure
from scalegrad.runs import check_writable_folder, write_json, write_text

TEXTS = 3  # kept of a table that is not about texts


def write_folder(found: Reproduction, plots: Sequence[Plot], folder: str | Path) -> Reproduction:
    """Write plots/NAME.png and .svg, results.md and results.json, each whole or not at all; gives what is in there.

    Of texts, which may be thousands, a table keeps a few, evenly spread; all where it is about texts.
    """
    folder = check_writable_folder(folder, "out")
    drawn = [Picture(p.name, p.caption, inline_svg(p.figure, f"{found.name}-{p.name}", p.caption)) for p in plots]
    found = replace(found, pictures=drawn, tables=[_kept(table) for table in found.tables])
    if plots:
        check_writable_folder(folder / "plots", "out")
    for plot, picture in zip(plots, drawn, strict=True):
        save_figure(plot.figure, folder / "plots" / f"{plot.name}.png")
        write_text(folder / "plots" / f"{plot.name}.svg", picture.svg)
    write_text(folder / "results.md", markdown(found))
    write_json(folder / "results.json", found.as_dict())  # last: where it is, all that it names is there
    return found


def read_folder(folder: str | Path) -> Reproduction:
    """What `write_folder` wrote."""
    folder = Path(folder)
    try:
        known = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        names = [plot["name"] for plot in known["plots"]]
        svgs = {name: (folder / "plots" / f"{name}.svg").read_text(encoding="utf-8") for name in names}
        return Reproduction.from_dict(known, svgs)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / 'results.json'} is not a reproduction this version reads: {error}") from None


def read_all(out: str | Path, names: Sequence[str]) -> list[Reproduction]:
    """Those of `names` that the folder `out` holds, in that order."""
    return [read_folder(Path(out) / name) for name in names if (Path(out) / name / "results.json").is_file()]


def _kept(table: Shown) -> Shown:
    """The table with few texts, and without what JSON has no word for: figures that are not finite."""
    systems = table.comparison.systems
    told = [system for system in (systems if table.texts else spoken_of(table.comparison)) if system.samples]
    most = max((len(system.samples) for system in told), default=0) if table.texts else TEXTS
    kept = set(spread_prefixes(told, most))

    def few(system: System) -> System:
        samples = [s for s in system.samples if s.prefix in kept] if any(system is other for other in told) else []
        figures = {name: value for name, value in system.figures.items() if math.isfinite(value)}
        return replace(system, samples=samples, figures=figures)

    return table._replace(comparison=replace(table.comparison, systems=[few(system) for system in systems]))
