"""Time and memory over vocabulary and sequence length, from a stored GPU run: `python -m benchmarks plot CSV`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from benchmarks.record import read
from scalegrad.extras import need
from scalegrad.options import AsJson, option

# One colour for each implementation, in every picture; ours are the strong ones.
COLOURS = {
    "SG scalegrad": "#c1121f",
    "CE scalegrad": "#1d3557",
    "CE Liger": "#2a9d8f",
    "CE torch compiled": "#8d99ae",
    "CE torch eager": "#c9ada7",
    "SG eager bias": "#e9a03b",
    "SG dense": "#9c6644",
}
Lines = Sequence[dict[str, str]]
Curve = tuple[list[int], list[float]]


def curves(lines: Lines, groups: tuple[str, ...], over: str, value: str) -> dict[str, Curve]:
    """By implementation: the cases' sizes in order, and what was measured there.

    >>> stored = [{"group": "long", "implementation": "SG", "steps": s, "ms": m} for s, m in (("8", "2"), ("4", "1"))]
    >>> curves(stored, ("long",), "steps", "ms")
    {'SG': ([4, 8], [1.0, 2.0])}
    """
    points: dict[str, dict[int, float]] = {}
    for line in lines:
        if line["group"] in groups and line[value]:
            points.setdefault(line["implementation"], {})[int(line[over])] = float(line[value])
    return {name: (sorted(at), [at[x] for x in sorted(at)]) for name, at in points.items() if len(at) > 1}


def draw(lines: Lines, groups: tuple[str, ...], over: str, label: str) -> Any:
    """Time left, extra memory right; a matplotlib figure."""
    figure = need("matplotlib.figure", extra="plots").Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _panel(left, curves(lines, groups, over, "ms"))
    _panel(right, curves(lines, groups, over, "extra_mib"))
    left.set_ylabel("forward + backward, ms")
    right.set_ylabel("extra peak, MiB")
    if over == "vocab":  # from the fastest to the dense formulation
        left.set_yscale("log")
        left.yaxis.set_major_formatter("{x:g}")
    else:  # is it flat?
        left.set_ylim(bottom=0)
    right.set_yscale("symlog", linthresh=1)  # a path that needs nothing more is at 0
    right.set_ylim(bottom=0)
    tokens = {int(line["batch"]) * int(line["steps"]) for line in lines if line["group"] in groups}
    for axes in (left, right):
        axes.set_xlabel(f"{label} ({max(tokens):,} tokens in all)")
    left.legend(frameon=False, fontsize=8)
    about = lines[0]
    figure.suptitle(f"{about['hardware']}, torch {about['torch']}, {about['date']}", fontsize=9)
    return figure


def _panel(axes: Any, found: dict[str, Curve]) -> None:
    known = list(COLOURS)
    for name in sorted(found, key=lambda name: known.index(name) if name in known else len(known)):
        style = "-" if name.endswith("scalegrad") else "--"
        axes.plot(*found[name], style, marker="o", markersize=4, label=name, color=COLOURS.get(name), clip_on=False)
    ticks = sorted({x for xs, _ in found.values() for x in xs})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [thousands(x) for x in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def thousands(size: int) -> str:
    """
    >>> thousands(500), thousands(50_257), thousands(131_072)
    ('500', '50k', '128k')
    """
    if size < 1000:
        return str(size)
    return f"{size // 1024 if size % 1024 == 0 else round(size / 1000)}k"


PICTURES = {
    "vocabulary": (("logits", "sweep"), "vocab", "vocabulary"),
    "length": (("long",), "steps", "length of a sequence"),
}


def command(
    csv: Path,
    *,
    out: Annotated[Path | None, option(help="Folder for the pictures (default: that of the CSV).")] = None,
    as_json: AsJson = False,
) -> None:
    """Time and memory over vocabulary and sequence length, drawn from a stored GPU run.

    Example: python -m benchmarks plot benchmarks/gpu-nvidia-h200.csv

    Parameters
    ----------
    csv
        What `python -m benchmarks gpu` stored.
    """
    lines = read(csv)
    missing = {"group", "implementation", "batch", "steps", "vocab", "ms", "extra_mib"} - set(lines[0] if lines else ())
    if missing:
        raise ValueError(f"{csv} is not a table of a GPU run: it has no column {', '.join(sorted(missing))}")
    made = []
    for name, (groups, over, label) in PICTURES.items():
        if not curves(lines, groups, over, "ms"):
            print(f"{name}: {csv} has no two sizes to draw a line through", file=sys.stderr)
            continue
        path = (out or csv.parent) / f"{csv.stem}-{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".tmp")
        draw(lines, groups, over, label).savefig(new, format="png", dpi=150)
        new.replace(path)
        made.append(str(path))
    print(json.dumps(made) if as_json else "\n".join(made))
