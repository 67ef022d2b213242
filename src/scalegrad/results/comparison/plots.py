"""The pictures of a comparison: training curves, seen mass, repetition beside human text, perplexity against it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scalegrad.results.comparison.colours import Look, looks
from scalegrad.results.comparison.columns import column, written
from scalegrad.results.comparison.systems import Comparison, System
from scalegrad.results.comparison.trade_off import trade_off
from scalegrad.results.figure import NAMED_POINTS, PALETTE, SIZE, Plot, grid, legend, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 10
_INK, _HUMAN = PALETTE["ink"], PALETTE["human"]


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
    if len(trained) > NAMED_POINTS:
        trained = [system for system in comparison.spoken_of if system.kind == "trained"]
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
    grid(axes, "y")
    legend(figure)
    return Plot(name, caption, figure)


def repetition_bars(comparison: Comparison) -> Plot | None:
    """Rep-1, Rep-2 and Rep-3 of every model as bars, human text as a line across."""
    systems = [system for system in comparison.of_kind("trained", "decoded") if "rep_1" in system.figures]
    if not systems:
        return None
    if len(systems) > _MOST_BARS:
        systems = [system for system in comparison.spoken_of if any(system is other for other in systems)]
    names = [name for name in ("rep_1", "rep_2", "rep_3") if name in systems[0].figures]
    figure = new_figure(SIZE[0], max(SIZE[1], 1.0 + 0.34 * len(systems)))
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    styles = looks(systems)
    for axes, name in zip(panels, names, strict=True):
        for place, (system, look) in enumerate(zip(systems, styles, strict=True)):
            _bar(axes, place, system, name, look)
        human = comparison.human.figures.get(name, math.nan) if comparison.human else math.nan
        if math.isfinite(human):
            axes.axvline(human, color=_HUMAN, linewidth=1.6, linestyle=(0, (4, 2)))
            axes.annotate(
                written(name, human), (human, 1.0), (0, 3), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="center", va="bottom", fontsize=8.5, color=_HUMAN,
            )  # fmt: skip
        ends = [human, *(s.figures[name] + s.deviations.get(name, 0.0) for s in systems)]
        top = max(filter(math.isfinite, ends), default=0.0)
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


def _two_lines(label: str) -> str:
    return label.replace(", ", ",\n", 1)
