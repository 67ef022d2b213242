"""What the pictures of a comparison share: their size, a grid, a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from scalegrad.results.comparison.colours import PALETTE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (5.4, 3.5)
NAMED_POINTS = 7  # with more, names would cover a picture


class Plot(NamedTuple):
    """A picture: a name for files and references, what stands below it, and the figure."""

    name: str
    caption: str
    figure: Figure


def grid(axes: Axes, axis: Literal["both", "y"]) -> None:
    """Thin lines behind what is drawn."""
    axes.grid(axis=axis, color=PALETTE["grid"], linewidth=0.7)
    axes.set_axisbelow(True)


def legend(figure: Figure, columns: int = 4) -> None:
    """Under the plot, where it covers no line: every label of every panel once; none where nothing has a label."""
    for old in list(figure.legends):
        old.remove()
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            list(found.values()), list(found), frameon=False, fontsize=8.5, labelcolor=PALETTE["ink"],
            loc="outside lower center", ncols=columns, handlelength=1.8,
        )  # fmt: skip
