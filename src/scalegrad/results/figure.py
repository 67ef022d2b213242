"""How figures look and how they are written: one style, colours that everyone can tell apart, files and inline SVG."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scalegrad.extras import need
from scalegrad.runs import replacing

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart under every common colour blindness, and in print.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GREY = "#222222", "#767676"

# By objective and by use. A page has a variable of each name, with another value in the dark (see `inline_svg`).
PALETTE = {
    "ink": INK,
    "soft": GREY,
    "mle": BLUE,
    "ul": PURPLE,
    "sg": VERMILLION,
    "human": GREEN,
    "other": "#8C6D31",
    "grid": "#DDDDDC",
}

SIZE = (5.4, 3.5)  # inches, of a figure on a page
NAMED_POINTS = 7  # with more, names would cover a figure
SUFFIXES = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 160

_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)


class Plot(NamedTuple):
    """A picture: a name for files and references, what stands below it, and the figure."""

    name: str
    caption: str
    figure: Figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of `width` × `height` inches on white, outside pyplot's global state."""
    figure: Figure = need("matplotlib.figure", extra="plots").Figure(figsize=(width, height), layout="constrained")
    figure.set_facecolor("white")
    return figure


def style_axes(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Left-aligned title, named axes, a quiet frame."""
    axes.set_title(title, loc="left", fontsize=11, color=INK, fontweight="bold")
    axes.set_xlabel(x, fontsize=10.5, color=INK)
    axes.set_ylabel(y, fontsize=10.5, color=INK)
    axes.tick_params(labelsize=9.5, colors=INK, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)


def grid(axes: Axes, axis: Literal["both", "y"]) -> None:
    """Thin lines behind what is drawn."""
    axes.grid(axis=axis, color=PALETTE["grid"], linewidth=0.7)
    axes.set_axisbelow(True)


def legend(figure: Figure, columns: int = 4) -> None:
    """Under the plot, where it covers no line: every label of every panel once; none where nothing has a label."""
    for old in list(figure.legends):
        old.remove()
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(
            list(handles.values()), list(handles), frameon=False, fontsize=8.5, labelcolor=PALETTE["ink"],
            loc="outside lower center", ncols=columns, handlelength=1.8,
        )  # fmt: skip


def check_picture_path(path: str | Path) -> Path:
    """`path` as a place a picture can be written to, or a ValueError: asked before the work, not after."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: a picture ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, not {path.suffix!r}")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: its folder {path.parent} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a picture's name")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path}: its folder {path.parent} cannot be written to")
    return path


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write `figure` as PNG, SVG or PDF by the suffix of `path`, whole or not at all.

    The same figure gives the same bytes: no date goes into the file.
    """
    path = check_picture_path(path)
    kind = path.suffix.lower().removeprefix(".")
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    settings = {"svg.hashsalt": "scalegrad", "pdf.fonttype": 42}  # 42: fonts a publisher accepts
    with need("matplotlib", extra="plots").rc_context(settings), replacing(path) as unfinished:
        figure.savefig(unfinished, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    return path


def inline_svg(figure: Figure, name: str, alternative: str) -> str:
    """`figure` as an `<svg>` element without a background, each colour of `PALETTE` as `var(--NAME, COLOUR)`.

    So it follows a page that defines these names, and shows the colours themselves where nobody does.
    `name` keeps its inner references apart from those of the page's other figures; `alternative` is read aloud.
    Text stays text, in the page's font. The same figure gives the same SVG.
    """
    stream = io.StringIO()
    settings = {"svg.hashsalt": f"scalegrad {name}", "svg.fonttype": "none", "svg.id": name}
    with need("matplotlib", extra="plots").rc_context(settings):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = _METADATA.sub("", _HEAD.sub("", stream.getvalue()))
    for token, colour in PALETTE.items():
        svg = svg.replace(colour.lower(), f"var(--{token}, {colour.lower()})")
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)  # every figure calls its parts alike
    svg = re.sub(r"font-family: ?[^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    title = alternative.replace("&", "&amp;").replace("<", "&lt;")
    return svg.replace("<svg", '<svg role="img"', 1).replace(">", f"><title>{title}</title>", 1)


def svg_width(svg: str) -> float:
    """How wide an `inline_svg` is meant to be, in points: 72 an inch."""
    width = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    return float(width.group(1)) if width else 0.0
