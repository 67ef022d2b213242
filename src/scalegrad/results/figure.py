"""How the figures look, and how they are written: one style, colours that everyone can tell apart, whole files only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalegrad.extras import need
from scalegrad.runs import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart under every common colour blindness, and in print.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GREY = "#222222", "#767676"

SUFFIXES = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 160


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
