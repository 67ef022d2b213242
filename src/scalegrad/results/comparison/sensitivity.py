"""How the figures depend on γ: the paper's sensitivity plots, from any comparison that holds several γ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from scalegrad.results.comparison.columns import written
from scalegrad.results.comparison.systems import Comparison, System
from scalegrad.results.comparison.trade_off import trade_off
from scalegrad.results.figure import PALETTE, SIZE, Plot, grid, legend, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REP_L = ("rep_window_16", "rep_window_32", "rep_window_128")


def mean_rep_l(figures: Mapping[str, float]) -> float:
    """The mean of Rep/16, Rep/32 and Rep/128, as the paper plots it.

    >>> round(mean_rep_l({"rep_window_16": 0.1, "rep_window_32": 0.2, "rep_window_128": 0.6}), 9)
    0.3
    """
    return sum(figures[name] for name in REP_L) / len(REP_L)


def sensitivity_plots(comparison: Comparison) -> list[Plot]:
    """Perplexity, mean Rep/l, uniq, and each Rep/l over γ, beside unlikelihood, MLE and human text."""
    swept = sorted(_swept(comparison), key=lambda system: system.level or 0.0)
    if len(swept) < 2:
        return []
    found = [
        _plot(comparison, swept, "sensitivity-ppl", "Perplexity over γ", {"perplexity": "ppl"}),
        _plot(comparison, swept, "sensitivity-rep", "Repetition over γ", {"mean Rep/l": "mean"}),
        _plot(comparison, swept, "sensitivity-uniq", "Distinct predictions over γ", {"uniq": "uniq"}),
        _plot(comparison, swept, "sensitivity-each", "Each Rep/l over γ",
              {"Rep/16": "rep_window_16", "Rep/32": "rep_window_32", "Rep/128": "rep_window_128"}),
        _plot(comparison, swept, "sensitivity-texts", "Repetition of texts over γ",
              {"Rep-1": "rep_1", "Rep-2": "rep_2", "Rep-3": "rep_3"}),
    ]  # fmt: skip
    if all("rep_1" in system.figures for system in swept):  # the page draws the one of Rep-1 anyway
        found.append(trade_off(comparison, ("rep_window_128",)))
    return [plot for plot in found if plot is not None]


def _swept(comparison: Comparison) -> list[System]:
    return [s for s in comparison.of_kind("trained") if s.objective == "sg" and s.level is not None]


def _plot(comparison: Comparison, swept: list[System], name: str, title: str, panels: dict[str, str]) -> Plot | None:
    """A panel for each figure; None where the models do not have them."""
    if any(_value(system, key) is None for system in swept for key in panels.values()):
        return None
    figure = new_figure(*SIZE)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, (label, key) in zip(axes, panels.items(), strict=True):
        _draw(panel, comparison, swept, key)
        style_axes(panel, title=title if len(panels) == 1 else "", x="γ", y="" if len(panels) > 1 else label)
        if len(panels) > 1:
            panel.set_title(label, fontsize=9.5, color=PALETTE["ink"])
            panel.tick_params(labelsize=8.5)
            panel.locator_params(axis="x", nbins=3)
        grid(panel, "y")
    if len(panels) > 1:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=PALETTE["ink"], fontweight="bold")
    legend(figure, columns=5)
    return Plot(name, _caption(comparison, swept, list(axes), list(panels.values())), figure)


def _caption(comparison: Comparison, swept: list[System], axes: list[Axes], keys: list[str]) -> str:
    """What is drawn beside the curve, as far as it is there."""
    lines = {"ul": "unlikelihood at its α", "mle": "MLE (which is γ = 1)"}
    named = {s.objective: lines[s.objective] for key in keys for s, _ in _across(comparison, key)}
    if "human" in {line.get_label() for panel in axes for line in panel.lines}:
        named["human"] = "human text"
    across = ", ".join(named[key] for key in (*lines, "human") if key in named)
    said = {
        "Mean of Rep/16, Rep/32 and Rep/128.": "mean" in keys,
        f"Lines across: {across or 'none'}.": True,
        "Where human text is far from all models, it is a number at the edge.": any(panel.texts for panel in axes),
        "Bars: deviation over seeds.": any(_deviation(system, key) for system in swept for key in keys),
    }
    return " ".join(sentence for sentence, is_so in said.items() if is_so)


def _draw(axes: Axes, comparison: Comparison, swept: list[System], key: str) -> None:
    gammas = [system.level or 0.0 for system in swept]
    values = [_value(system, key) or 0.0 for system in swept]
    spreads = [_deviation(system, key) for system in swept]
    errors = spreads if any(spreads) else None
    axes.errorbar(gammas, values, yerr=errors, color=PALETTE["sg"], marker="o", markersize=4, linewidth=1.8, label="SG")
    dashes = iter(("--", "-.", ":", (0, (5, 1)), (0, (1, 1))))
    for system, value in _across(comparison, key):
        values.append(value)
        dash = "-" if system.objective == "mle" else next(dashes, "--")
        axes.axhline(value, color=PALETTE[system.objective], linewidth=1.3, linestyle=dash, label=system.label)
    human = _value(comparison.human, key) if comparison.human else None
    if human is not None and math.isfinite(human):
        _draw_human(axes, human, [value for value in values if math.isfinite(value)], key)


def _across(comparison: Comparison, key: str) -> list[tuple[System, float]]:
    """The models without a γ, and their figure: lines across the picture."""
    others = [system for system in comparison.of_kind("trained") if system.objective in ("ul", "mle")]
    values = [(system, _value(system, key)) for system in others]
    return [(system, value) for system, value in values if value is not None and math.isfinite(value)]


def _draw_human(axes: Axes, human: float, models: list[float], key: str) -> None:
    """Human text as a line across; where that would press the models together, as a number at the edge."""
    low, high = min(models, default=human), max(models, default=human)
    if low == high or low - 3 * (high - low) <= human <= high + 3 * (high - low):
        axes.axhline(human, color=PALETTE["human"], linewidth=1.5, linestyle=(0, (4, 2)), label="human")
        return
    above, number = human > high, written(REP_L[0] if key == "mean" else key, human)
    bottom, top = axes.get_ylim()
    room = 0.1 * (top - bottom)  # for the number, beyond every line
    axes.set_ylim(bottom - (0.0 if above else room), top + (room if above else 0.0))
    axes.annotate(
        f"human text: {number} {'↑' if above else '↓'}", (0.99, 0.98 if above else 0.02),
        xycoords="axes fraction", ha="right", va="top" if above else "bottom", fontsize=8.5, color=PALETTE["human"],
    )  # fmt: skip


def _value(system: System, key: str) -> float | None:
    if key == "mean":
        return mean_rep_l(system.figures) if all(name in system.figures for name in REP_L) else None
    return system.figures.get(key)


def _deviation(system: System, key: str) -> float:
    if key == "mean":  # the three move together from seed to seed: their deviations average
        return mean_rep_l(system.deviations) if all(name in system.deviations for name in REP_L) else 0.0
    return system.deviations.get(key, 0.0)
