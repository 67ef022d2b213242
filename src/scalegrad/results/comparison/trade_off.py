"""The picture of perplexity against repetition: curves over γ, over α and over the penalty of a decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scalegrad.extras import need
from scalegrad.results.comparison.colours import looks
from scalegrad.results.comparison.columns import column
from scalegrad.results.comparison.curve import is_curve, point, swept
from scalegrad.results.comparison.systems import Comparison, System
from scalegrad.results.figure import NAMED_POINTS, PALETTE, SIZE, Plot, grid, legend, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure

# Offsets of a name from its point, in points, and where the name is anchored; the best first.
_PLACES = (
    (8, 0, "left"), (-8, 0, "right"), (0, 11, "center"), (0, -11, "center"),
    (8, 11, "left"), (-8, 11, "right"), (8, -11, "left"), (-8, -11, "right"),
)  # fmt: skip
TWO_LENGTHS = (
    "Rep-n is of generated texts, perplexity of long chunks, where more counts as seen: at one length the penalty "
    "costs less than these figures say."
)
_OF_TEXTS = ("rep_1", "rep_2", "rep_3")
_INK, _SOFT, _HUMAN = (PALETTE[name] for name in ("ink", "soft", "human"))


class _Mark(NamedTuple):
    """A system as a point: where it is, what to write beside it and in which colour, and what was drawn."""

    x: float
    y: float
    name: str
    is_label: bool  # the whole of it, not a strength alone
    colour: str
    drawn: ErrorbarContainer


def trade_off(comparison: Comparison, figures: Sequence[str] = ("rep_1", "rep_window_128")) -> Plot | None:
    """Perplexity against repetition, the first of `figures` that is there: lower left is better.

    Human text is a line, for it has no perplexity. Strengths of one objective are joined, and so are the penalties a
    model is decoded under. With many points only strengths are written beside those of a curve, and a legend names the
    curves. Penalties reach far: where trained models would stand in a corner, that corner is the picture, and all a
    small one.
    """
    models = comparison.of_kind("trained", "decoded")
    name = next((key for key in figures if sum(point(s.figures, key) is not None for s in models) > 1), None)
    if name is None:
        return None
    shown = [system for system in models if point(system.figures, name)]
    many = len(shown) > NAMED_POINTS
    corner = _crowded(shown, name) if many else None
    figure = new_figure(SIZE[0], SIZE[1] + (1.1 if corner else 0.3 if many else 0.0))
    axes = figure.subplots()
    marks = _draw(axes, shown, name, many=many)
    human = comparison.human.figures.get(name, math.nan) if comparison.human else math.nan
    style_axes(axes, title=f"Perplexity against {column(name).title}", x="perplexity", y=column(name).title)
    grid(axes, "both")
    if many:
        legend(figure)  # takes its room before names are placed
    small = None
    if corner is None:
        axes.margins(0.16, 0.2)
    else:
        axes.set(xlim=corner[:2], ylim=corner[2:])
        small = _small_picture(figure, axes, shown, name, human)
    covering: list[Artist] = [small] if small else []
    if small is None or axes.viewLim.containsy(human):
        covering += _draw_human(axes, human)
    _write_names(figure, axes, marks, covering, many=many)
    hollow = "; rings: the same model under a penalty while decoding" if comparison.of_kind("decoded") else ""
    spread = " Bars: deviation over seeds." if any(system.deviations for system in shown) else ""
    penalised = any(system.kind == "decoded" and system.gamma is not None for system in shown)
    lengths = f" {TWO_LENGTHS}" if penalised and name in _OF_TEXTS else ""
    context = " The small picture has every point, the large one its frame." if small else ""
    caption = f"Better is down and to the left{hollow}.{spread}{lengths}{context}"
    return Plot(f"trade-off-{name.replace('_', '-')}", caption, figure)


def _draw(axes: Axes, shown: Sequence[System], name: str, *, many: bool) -> list[_Mark]:
    """Every system as a point, and the curves through them.

    Of many points only the colour says whose strength it is. What the colour of no curve tells has its whole label
    beside it, and is in the legend until that is written.
    """
    curves = _curves(shown, name)
    for (kind, objective), path in curves.items():
        sign = "γ while decoding" if kind == "decoded" else "α" if objective == "ul" else "γ"
        axes.plot(
            [s.figures["ppl"] for s in path], [s.figures[name] for s in path], linewidth=1.2, alpha=0.6, zorder=1,
            color=PALETTE.get(objective, PALETTE["other"]), linestyle=(0, (1, 2)) if kind == "decoded" else "-",
            label=f"{objective.upper()}, {sign}",
        )  # fmt: skip
    marks = []
    for system, look in zip(shown, looks(shown), strict=True):
        x, y = system.figures["ppl"], system.figures[name]
        is_label = not many or (system.kind, system.objective) not in curves or _short(system) is None
        written = system.label if is_label else _short(system) or ""
        drawn = axes.errorbar(
            x, y, xerr=_deviation(system, "ppl"), yerr=_deviation(system, name), fmt="o",
            markersize=5 if many else 7, color=look.colour, alpha=1.0 if many or look.hollow else look.opacity,
            linewidth=0.9 if many else 1.4, label=written if is_label else None,
            markerfacecolor="none" if look.hollow else look.colour, markeredgecolor=look.colour,
        )  # fmt: skip
        marks.append(_Mark(x, y, written, is_label, look.colour if many else _INK, drawn))
    return marks


def _curves(systems: Sequence[System], name: str) -> dict[tuple[str, str], list[System]]:
    """By kind and objective, where the strengths tried are enough for a curve."""
    kinds = dict.fromkeys((system.kind, system.objective) for system in systems if system.level is not None)
    paths = {kind: swept(systems, *kind) for kind in kinds}
    return {k: path for k, path in paths.items() if is_curve([(s.figures["ppl"], s.figures[name]) for s in path])}


def _short(system: System) -> str | None:
    """A strength or a schedule without its objective; None where there is none.

    >>> _short(System(objective="sg", strength="linear:1.0:0.2:9")), _short(System(objective="mle", decoding="beam=3"))
    ('linear:1.0:0.2:9', None)
    """
    if system.level is not None:
        return f"{system.level:g}"
    return system.strength if system.kind == "trained" and isinstance(system.strength, str) else None


def _deviation(system: System, name: str) -> float | None:
    found = system.deviations.get(name, math.nan)
    return found if math.isfinite(found) else None


def _reach(systems: Sequence[System], name: str) -> tuple[float, float]:
    """Where the error bars of a figure begin and end."""
    bars = [(system.figures[name], _deviation(system, name) or 0.0) for system in systems]
    return min(value - spread for value, spread in bars), max(value + spread for value, spread in bars)


def _crowded(shown: Sequence[System], name: str) -> tuple[float, float, float, float] | None:
    """Left, right, bottom and top of where the trained models are, if that is less than half of the width of all."""
    trained = [system for system in shown if system.kind == "trained"]
    if len(trained) < 3:
        return None
    (left, right), (bottom, top) = (_reach(trained, key) for key in ("ppl", name))
    everything = [s.figures["ppl"] for s in shown]
    if bottom == top or not 0 < right - left < 0.5 * (max(everything) - min(everything)):
        return None
    aside, above = 0.12 * (right - left), 0.12 * (top - bottom)
    return left - aside, right + aside, bottom - above, top + above


def _small_picture(figure: Figure, axes: Axes, shown: Sequence[System], name: str, human: float) -> Axes:
    """Every point, and the frame of the large picture around those that are in it.

    It is in the upper right, which curves that fall leave free; where they do not, the large picture grows upwards
    until they do. Only the dotted line of a penalty, on its way out of the picture, may pass behind it.
    """
    small = axes.inset_axes((0.56, 0.56, 0.44, 0.44))
    _draw(small, shown, name, many=True)
    _draw_human(small, human, named=not axes.viewLim.containsy(human))
    for line in small.lines:
        line.set_markersize(2.5)
    small.margins(0.08, 0.12)
    small.tick_params(labelsize=7.5, colors=_SOFT, length=2)
    small.locator_params(nbins=4)
    for side in small.spines.values():
        side.set(color=_SOFT, linewidth=0.8)
    figure.draw_without_rendering()  # only now places are known
    while _covers(small, axes):
        bottom, top = axes.get_ylim()
        axes.set_ylim(bottom, top + 0.05 * (top - bottom))
    frame = axes.viewLim
    rectangle = need("matplotlib.patches", extra="plots").Rectangle
    small.add_patch(rectangle(frame.p0, frame.width, frame.height, fill=False, edgecolor=_SOFT, linewidth=0.8))
    small.autoscale_view()
    return small


def _covers(small: Axes, axes: Axes) -> bool:
    """Does a point or an error bar of the large picture come near the small one and its numbers, a line into it?"""
    near: Any = small.get_tightbbox()
    solid = [line for line in axes.lines if line.get_linestyle() in ("-", "None")]  # "None": a point
    drawn = [(line.get_path(), line.get_transform()) for line in solid]
    drawn += [(path, bars.get_transform()) for bars in axes.collections for path in bars.get_paths()]
    paths = [path.transformed(transform) for path, transform in drawn]
    return any(
        near.padded(7).count_contains(path.vertices) or path.intersects_bbox(small.bbox, filled=False) for path in paths
    )


def _draw_human(axes: Axes, value: float, *, named: bool = True) -> list[Artist]:
    """Human text as a line across, its name on the side that has more room; nothing where it is not finite."""
    if not math.isfinite(value):
        return []
    line = axes.axhline(value, color=_HUMAN, linewidth=1.4, linestyle=(0, (4, 2)))
    if not named:
        return [line]
    high = value > sum(axes.get_ylim()) / 2
    name = axes.annotate(
        "human text", (0.0, value), (4, -3 if high else 3), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="left", va="top" if high else "baseline", fontsize=8.5, color=_HUMAN,
    )  # fmt: skip
    return [line, name]


def _write_names(figure: Figure, axes: Axes, marks: Sequence[_Mark], covering: Sequence[Artist], *, many: bool) -> None:
    """Each point's name beside it, at the first of eight places without another name, a point or what is `covering`.

    Where `many` are there, one may find no place: the legend names it, unless it is one of a curve.
    """
    figure.draw_without_rendering()  # only now places are known
    frame = axes.get_window_extent()
    taken = [_square(axes.transData.transform((mark.x, mark.y))) for mark in marks]
    taken += [artist.get_tightbbox() for artist in covering]
    for mark in sorted(marks, key=lambda mark: not mark.is_label):  # whole labels before strengths
        if not axes.viewLim.contains(mark.x, mark.y):
            continue
        tried = []
        for dx, dy, side in _PLACES:
            text = axes.annotate(
                mark.name, (mark.x, mark.y), (dx, dy), textcoords="offset points", ha=side, va="center", fontsize=8.5,
                color=mark.colour,
            )  # fmt: skip
            box = text.get_window_extent()
            outside = sum(max(0.0, *ends) for ends in ((frame.p0 - box.p0), (box.p1 - frame.p1)))
            tried.append((outside + 50 * sum(box.overlaps(other) for other in taken), text, box))
            if tried[-1][0] == 0:
                break
        cost, kept, box = min(tried, key=lambda place: place[0])
        named = cost == 0 or not many
        if named:
            taken.append(box)
            mark.drawn.set_label("_named")
        for _, text, _ in tried:
            if text is not kept or not named:
                text.remove()
    if many:
        legend(figure)


def _square(centre: Any, size: float = 12.0) -> Any:
    """The square around a point, in pixels."""
    x, y = (float(place) - size / 2 for place in centre)
    return need("matplotlib.transforms", extra="plots").Bbox.from_bounds(x, y, size, size)
