"""The pictures of a comparison: training curves, seen mass, repetition beside human text, perplexity against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scalegrad._extras import need
from scalegrad.report.comparison.colours import PALETTE, Look, looks
from scalegrad.report.comparison.columns import column, written
from scalegrad.report.comparison.systems import Comparison, System, spoken_of
from scalegrad.report.figure import new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (5.4, 3.5)
_MOST_BARS = 10
_NAMED_POINTS = 7  # with more, names would cover the picture
# Offsets of a name from its point, in points, and where the name is anchored; the best first.
_PLACES = (
    (8, 0, "left"), (-8, 0, "right"), (0, 11, "center"), (0, -11, "center"),
    (8, 11, "left"), (-8, 11, "right"), (8, -11, "left"), (-8, -11, "right"),
)  # fmt: skip
_GRID, _INK, _SOFT, _HUMAN = (PALETTE[name] for name in ("grid", "ink", "soft", "human"))


class Plot(NamedTuple):
    """A picture: a name for files and references, what stands below it, and the figure."""

    name: str
    caption: str
    figure: Figure


def plots(comparison: Comparison) -> list[Plot]:
    """Every picture that the data is there for."""
    found = [
        curves(
            comparison,
            "validation_nll",
            "validation",
            "Validation loss while training",
            "plain NLL a token (nats)",
            "Plain −log p of the validation text, whatever the objective: lower predicts better. Ringed: the step that "
            "was selected.",
        ),
        curves(
            comparison,
            "seen_mass",
            "seen-mass",
            "Probability given to what was already said",
            "seen mass",
            "Share of the probability that the model gives, at each step of the training text, to tokens that stand "
            "earlier in it. The objectives push it down.",
        ),
        repetition_bars(comparison),
        trade_off(comparison),
    ]
    return [plot for plot in found if plot is not None]


def curves(comparison: Comparison, key: str, name: str, title: str, y: str, caption: str) -> Plot | None:
    """A figure of the logs over the steps, a line a model."""
    trained = comparison.of_kind("trained")
    if len(trained) > _NAMED_POINTS:
        trained = [system for system in spoken_of(comparison) if system.kind == "trained"]
    lines = [_series(system.log, key) for system in trained]
    if not any(len(values) > 1 for _, values in lines):
        return None
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    for (steps, values), system, look in zip(lines, trained, looks(trained), strict=True):
        if not values:
            continue
        style: dict[str, Any] = {
            "color": look.colour,
            "alpha": look.opacity,
            "linestyle": look.dash,
            "label": system.label,
        }
        axes.plot(steps, values, linewidth=1.8, marker="o" if len(steps) <= 15 else "", markersize=3.5, **style)
        if key == "validation_nll":
            low = min(range(len(values)), key=values.__getitem__)
            axes.plot(steps[low], values[low], "o", markersize=7, markerfacecolor="none", markeredgecolor=look.colour)
    style_axes(axes, title=title, x="step", y=y)
    _grid(axes, "y")
    _legend(axes, len(trained))
    return Plot(name, caption, figure)


def repetition_bars(comparison: Comparison) -> Plot | None:
    """Rep-1, Rep-2 and Rep-3 of every model as bars, human text as a line across."""
    systems = [system for system in comparison.of_kind("trained", "decoded") if "rep_1" in system.figures]
    if not systems:
        return None
    if len(systems) > _MOST_BARS:
        systems = [system for system in spoken_of(comparison) if any(system is other for other in systems)]
    names = [name for name in ("rep_1", "rep_2", "rep_3") if name in systems[0].figures]
    figure = new_figure(SIZE[0], max(SIZE[1], 1.0 + 0.34 * len(systems)))
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    styles = looks(systems)
    for axes, name in zip(panels, names, strict=True):
        for place, (system, look) in enumerate(zip(systems, styles, strict=True)):
            _bar(axes, place, system, name, look)
        human = comparison.human.figures.get(name) if comparison.human else None
        if human is not None:
            axes.axvline(human, color=_HUMAN, linewidth=1.6, linestyle=(0, (4, 2)))
            axes.annotate(
                written(name, human), (human, 1.0), (0, 3), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="center", va="bottom", fontsize=8.5, color=_HUMAN,
            )  # fmt: skip
        top = max([human or 0.0, *(s.figures[name] + s.deviations.get(name, 0.0) for s in systems)])
        axes.set_xlim(0, max(top * 1.32, 0.05))
        axes.set_yticks(range(len(systems)), [_two_lines(system.label) for system in systems])
        axes.invert_yaxis() if axes is panels[0] else None
        style_axes(axes, title="", x=column(name).title, y="")
        axes.tick_params(axis="x", labelsize=8.5)
        axes.locator_params(axis="x", nbins=3)
        axes.tick_params(axis="y", length=0)
    figure.suptitle("Repetition in free-running text", x=0.01, ha="left", fontsize=11, color=_INK, fontweight="bold")
    caption = "Share of words, word pairs and three-word runs that were already said in the same text"
    return Plot(
        "repetition", f"{caption}{'; dashed: human text of the same length' if comparison.human else ''}.", figure
    )


def trade_off(comparison: Comparison, figures: Sequence[str] = ("rep_1", "rep_128")) -> Plot | None:
    """Perplexity against repetition, the first of `figures` that is there: lower left is better.

    Human text is a line, for it has no perplexity. Strengths of one objective are joined, and so are the penalties a
    model is decoded under. With many points only strengths are written beside them, and a legend names the curves.
    Penalties reach far: where trained models would stand in a corner, that corner is the picture, and all a small one.
    """
    shown = [system for system in comparison.of_kind("trained", "decoded") if "ppl" in system.figures]
    name = next((key for key in figures if sum(key in s.figures for s in shown) > 1), None)
    shown = [system for system in shown if name in system.figures]
    if name is None or len(shown) < 2:
        return None
    many = len(shown) > _NAMED_POINTS
    corner = _crowded(shown, name) if many else None
    figure = new_figure(SIZE[0], SIZE[1] + (1.1 if corner else 0.3 if many else 0.0))
    axes = figure.subplots()
    points = _points(axes, shown, name, many=many)
    human = comparison.human.figures.get(name) if comparison.human else None
    title = f"Perplexity against {column(name).title}"
    style_axes(axes, title=title, x="perplexity", y=column(name).title)
    _grid(axes, "both")
    if many:
        _legend(axes, 4)
    if corner is None:
        axes.margins(0.16, 0.2)
        _human_line(axes, human)
    else:
        axes.set(xlim=corner[:2], ylim=corner[2:])
        points = [point for point in points if _inside(point, corner)]
        whole = axes.inset_axes(_free_place(points, corner))
        _points(whole, shown, name, many=True)
        _as_context(whole, corner)
        _human_line(whole, human)
    _label_points(axes, points)
    hollow = "; rings: the same model under a penalty while decoding" if comparison.of_kind("decoded") else ""
    spread = " Bars: deviation over seeds." if any(system.deviations for system in shown) else ""
    small = " The small picture has every point, the large one its frame." if corner else ""
    caption = f"Better is down and to the left{hollow}.{spread}{small}"
    return Plot(f"trade-off-{name.replace('_', '-')}", caption, figure)


def _points(axes: Axes, shown: Sequence[System], name: str, *, many: bool) -> list[tuple[float, float, str, str]]:
    """Draw every system, its curve through it; where each is, what to write beside it, and in which colour."""
    _family_lines(axes, shown, name)
    points = []
    for system, look in zip(shown, looks(shown), strict=True):
        x, y = system.figures["ppl"], system.figures[name]
        solid = many or look.hollow
        axes.errorbar(
            x, y, xerr=system.deviations.get("ppl"), yerr=system.deviations.get(name), fmt="o",
            markersize=5 if many else 7, color=look.colour, alpha=1.0 if solid else look.opacity,
            linewidth=0.9 if many else 1.4,
            markerfacecolor="none" if look.hollow else look.colour, markeredgecolor=look.colour,
        )  # fmt: skip
        # Of many points only the colour says whose strength it is.
        points.append((x, y, _short(system), look.colour) if many else (x, y, system.label, _INK))
    return points


def _crowded(shown: Sequence[System], name: str) -> tuple[float, float, float, float] | None:
    """Left, right, bottom and top of where the trained models are, if that is less than half of the width of all."""
    trained = [(s.figures["ppl"], s.figures[name]) for s in shown if s.kind == "trained"]
    if len(trained) < 3:
        return None
    (left, right), (bottom, top) = ((min(side), max(side)) for side in zip(*trained, strict=True))
    everything = [s.figures["ppl"] for s in shown]
    if bottom == top or not 0 < right - left < 0.5 * (max(everything) - min(everything)):
        return None
    aside, above = 0.12 * (right - left), 0.12 * (top - bottom)
    return left - aside, right + aside, bottom - above, top + above


def _inside(point: tuple[float, float, str, str], corner: tuple[float, float, float, float]) -> bool:
    left, right, bottom, top = corner
    return left <= point[0] <= right and bottom <= point[1] <= top


def _free_place(
    points: Sequence[tuple[float, float, str, str]], corner: tuple[float, float, float, float], size: float = 0.44
) -> tuple[float, float, float, float]:
    """Upper right of the axes, which falling curves leave free, or lower left where fewer points are there."""
    left, right, bottom, top = corner
    places = [((x - left) / (right - left), (y - bottom) / (top - bottom)) for x, y, *_ in points]
    above = sum(x > 1 - size and y > 1 - size for x, y in places)
    below = sum(x < size and y < size for x, y in places)
    start = 1 - size if above <= below else 0.0
    return start, start, size, size


def _as_context(axes: Axes, corner: tuple[float, float, float, float]) -> None:
    """A small picture within the large one, with the frame of the latter in it."""
    left, right, bottom, top = corner
    rectangle = need("matplotlib.patches", extra="plots").Rectangle
    axes.add_patch(rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=_SOFT, linewidth=0.8))
    for line in axes.lines:
        line.set_markersize(2.5)
    axes.margins(0.08, 0.12)
    axes.tick_params(labelsize=7.5, colors=_SOFT, length=2)
    axes.locator_params(nbins=4)
    for side in axes.spines.values():
        side.set(color=_SOFT, linewidth=0.8)


def _human_line(axes: Axes, value: float | None) -> None:
    if value is not None:
        axes.axhline(value, color=_HUMAN, linewidth=1.4, linestyle=(0, (4, 2)))
        axes.annotate("human text", (0.0, value), (4, 3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", ha="left", fontsize=8.5, color=_HUMAN)  # fmt: skip


def _short(system: System) -> str:
    return system.label.rpartition("=")[2] if system.strength is None else f"{system.strength:g}"


def _series(log: Sequence[Mapping[str, Any]], key: str) -> tuple[list[float], list[float]]:
    points = [(entry["step"], entry[key]) for entry in log if entry.get(key) is not None and "step" in entry]
    return [step for step, _ in points], [value for _, value in points]


def _bar(axes: Axes, place: int, system: System, name: str, look: Look) -> None:
    value = system.figures.get(name)
    if value is None:
        return
    spread = system.deviations.get(name)
    fill: dict[str, Any] = {"facecolor": "none", "hatch": "////"} if look.hollow else {"facecolor": look.colour}
    axes.barh(place, value, height=0.62, edgecolor=look.colour, linewidth=1.0, alpha=look.opacity, **fill)
    if spread:
        axes.errorbar(value, place, xerr=spread, color=_INK, linewidth=1.4)
    end = value + (spread or 0.0)
    axes.annotate(
        written(name, value), (end, place), (4, 0), textcoords="offset points", va="center", fontsize=8.5, color=_INK
    )


def _family_lines(axes: Axes, systems: Sequence[System], name: str) -> None:
    """Join the strengths of one objective, and a model with its decodings."""
    for kind, family in dict.fromkeys((system.kind, system.family) for system in systems):
        by_gamma = family == "sg" or kind == "decoded"  # weakest first: γ falls from 1, α rises from 0
        own = sorted(
            (s for s in systems if (s.kind, s.family) == (kind, family) and s.strength is not None),
            key=lambda system: -(system.strength or 1.0) if by_gamma else system.strength or 0.0,
        )
        start = [s for s in systems if s.kind == "trained" and s.family == ("mle" if kind == "trained" else family)][:1]
        path = own if not start or start[0] in own else start + own
        if len(own) > 1:  # through one point there is no curve
            colour = PALETTE.get(family, PALETTE["other"])
            curve = f"{family.upper()}, {'γ while decoding' if kind == 'decoded' else 'α' if family == 'ul' else 'γ'}"
            dots = (0, (1, 2)) if kind == "decoded" else "-"
            xs, ys = [s.figures["ppl"] for s in path], [s.figures[name] for s in path]
            axes.plot(xs, ys, color=colour, linewidth=1.2, alpha=0.6, linestyle=dots, zorder=1, label=curve)


def _label_points(axes: Axes, points: Sequence[tuple[float, float, str, str]]) -> None:
    """Each point's name beside it, at the first of eight places where it covers no other name and no point.

    A point is where it is, what to write beside it, and in which colour.
    """
    axes.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]  # only now places are known
    to_pixels = axes.transData.transform
    taken = [_box(to_pixels((x, y))) for x, y, *_ in points]
    frame = axes.get_window_extent()
    for x, y, label, colour in points:
        tried = []
        for dx, dy, side in _PLACES:
            text = axes.annotate(
                label, (x, y), (dx, dy), textcoords="offset points", ha=side, va="center", fontsize=8.5, color=colour
            )
            box = text.get_window_extent()
            outside = max(0.0, frame.x0 - box.x0) + max(0.0, box.x1 - frame.x1)
            tried.append((outside + 50 * sum(box.overlaps(other) for other in taken), text, box))
            if tried[-1][0] == 0:
                break
        cost, kept, box = min(tried, key=lambda place: place[0])
        named = cost == 0 or len(points) <= _NAMED_POINTS  # of many points one may go without a name
        taken += [box] if named else []
        for _, text, _ in tried:
            if text is not kept or not named:
                text.remove()


def _box(centre: Any, size: float = 14.0) -> Any:
    """The square around a point, in pixels."""
    x, y = (float(place) - size / 2 for place in centre)
    return need("matplotlib.transforms", extra="plots").Bbox.from_bounds(x, y, size, size)


def _two_lines(label: str) -> str:
    return label.replace(", ", ",\n", 1)


def _grid(axes: Axes, axis: Literal["both", "y"]) -> None:
    axes.grid(axis=axis, color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def _legend(axes: Axes, systems: int) -> None:
    """Under the plot, where it covers no line."""
    axes.figure.legend(
        frameon=False,
        fontsize=8.5,
        labelcolor=_INK,
        loc="outside lower center",
        ncols=min(systems, 4),
        handlelength=1.8,
    )
