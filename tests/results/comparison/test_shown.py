"""The page, the pictures, the terminal and the Markdown: numbers in their places, a stranger's texts harmless."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from math import nan

import pytest
from rich.console import Console

from scalegrad.results.comparison import Comparison, System, page, plots
from scalegrad.results.comparison.columns import best, further_columns, main_columns
from scalegrad.results.comparison.page import examples, how_it_was_made, tiles
from scalegrad.results.comparison.sensitivity import sensitivity_plots
from scalegrad.results.comparison.terminal import markdown, print_comparison
from scalegrad.results.comparison.trade_off import trade_off


@pytest.fixture
def html(comparison):
    return page(comparison)


def test_the_page_needs_nothing_else(html):
    assert "://" not in re.sub(r"http://www\.w3\.org/[\w/]+", "", html)  # names of SVG, not addresses to load
    assert "default-src 'none'" in html
    assert "<script" not in html
    assert "onerror" not in html.replace("onerror=alert(1)&gt;", "")  # as text it may stand there
    assert "&lt;script&gt;window.owned" in html
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "A note with &lt;b&gt;signs&lt;/b&gt;." in html


def test_figures_and_texts_stand_on_the_page(html):
    assert re.search(r"<h1>Of 100 words, SG γ=0.2 repeats 44 and MLE 66\. People repeat 32\.</h1>", html)
    row = re.search(r'<th scope="row">[^\n]*SG γ=0\.2</th>\n(.*?)</tr>', html, re.DOTALL).group(1)
    assert re.sub(r"<[^>]+>|\s", " ", row).split() == ["14.20", "±0.05", ".443", "±.006", ".215", ".143", "22,250"]
    assert html.count("<mark>") > 2
    assert "ends in a loop" not in html  # the horses go on after the loop here
    assert html.count('<figure class="panel"') == 4


def test_best_is_nearest_to_people(comparison):
    assert best(comparison, "rep_1") == {2}
    assert best(comparison, "ppl") == {0}
    assert best(comparison, "uniq_w") == {2}
    tied = [System("a", {"ppl": 1.001}), System("b", {"ppl": 1.002})]
    assert best(Comparison(tied), "ppl") == set()  # both print 1.00
    assert best(replace(comparison, apart=frozenset({"ppl"})), "ppl") == set()


def test_columns_follow_the_figures():
    rows = [System("x", {"ppl": 2.0, "accuracy": 0.5, "own_figure": 1.0, "rep_1": 0.4})]
    assert main_columns(rows) == {"Predicting the next token": ["ppl"], "Writing on its own": ["rep_1"]}
    assert further_columns(rows) == ["accuracy", "own_figure"]
    assert main_columns([System("x", {"own_figure": 1.0})]) == {"Figures": ["own_figure"]}


def test_a_figure_that_nobody_has_makes_no_column():
    rows = [System(name, {"ppl": ppl}) for name, ppl in (("MLE", 20.0), ("SG", 21.0))]
    assert "peak MiB" not in markdown(Comparison(rows))
    rows.append(System("UL", {"ppl": 22.0, "peak_memory_mib": 512.0}))
    shown = markdown(Comparison(rows))
    assert "| MLE | **20.00** | – |" in shown
    assert "| UL | 22.00 | 512 |" in shown  # alone, so not the best of anything


def test_tiles(comparison):
    assert [(tile.before, tile.after, tile.beside) for tile in tiles(comparison)] == [
        ("66%", "44%", "human text 32%"),
        ("42%", "14%", "human text 3%"),
        ("16.8k", "22.2k", "human text 27.6k"),
        ("13.24", "14.20", "+7.3%"),
    ]


def test_examples_are_evenly_spread_and_of_the_systems_spoken_of(comparison):
    found = examples(comparison, 3)
    assert [example.prefix for example in found] == [f"In the year {year} the" for year in (1900, 1903, 1906)]
    assert [text.label for text in found[0].texts] == ["MLE", "SG γ=0.2", "Human"]
    assert [piece.again for piece in found[0].texts[0].pieces][:2] == [False, True]


def test_settings_shared_and_own():
    def run(label: str, objective: str) -> System:
        config = {"objective": objective, "settings": {"lr": 1e-4, "seed": "0, 1"}, "lora": None, "data": ["a.jsonl"]}
        start = {"hardware": "a laptop", "versions": {"torch": "2.13"}, "git": None}
        return System(label, made={"config": config, "environment": {"starts": [start]}, "done": {"seconds": 3}})

    compared = Comparison([run("MLE", "mle"), run("SG", "sg=0.2")])
    made = how_it_was_made(compared)
    assert made["shared"] == {"settings.lr": 1e-4, "settings.seed": "0, 1", "lora": None, "data": ["a.jsonl"]}
    assert (made["labels"], made["own"]) == (["MLE", "SG"], {"objective": ["mle", "sg=0.2"]})
    assert made["machines"][1] == ("SG", {"hardware": "a laptop", "versions.torch": "2.13", "result.seconds": 3})
    html = page(compared)
    assert "<dd>a.jsonl</dd>" in html
    assert "None" not in html


def test_curves_draw_the_log(comparison):
    drawn = {plot.name: plot.figure for plot in plots(comparison)}
    assert list(drawn) == ["validation", "seen-mass", "repetition", "trade-off-rep-1"]
    line, ring = drawn["validation"].axes[0].lines[:2]
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([1, 2, 3], [4.0, 3.0, 3.5])
    assert (ring.get_xdata().tolist(), ring.get_ydata().tolist()) == ([2], [3.0])  # the selected step


def test_bars_and_points_have_the_figures(comparison):
    drawn = {plot.name: plot.figure for plot in plots(comparison)}
    bars = drawn["repetition"].axes[1].patches  # Rep-2
    assert [round(bar.get_width(), 3) for bar in bars] == [0.5, 0.363, 0.215, 0.389, 0.22]
    human = drawn["repetition"].axes[1].lines[-1]
    assert set(human.get_xdata()) == {0.076}
    points = {text.get_text() for text in drawn["trade-off-rep-1"].axes[0].texts}
    assert points == {"human text", *(system.label for system in comparison.of_kind("trained", "decoded"))}


def test_no_data_no_picture():
    assert plots(Comparison([System(figures={"rouge_1": 40.0})])) == []
    assert trade_off(Comparison([System(figures={"ppl": 3.0, "rep_1": 0.5})])) is None


@pytest.mark.parametrize("at", range(4))
def test_bars_of_what_is_not_finite(at):
    rows = [System(name, {"rep_1": 0.5}, kind) for name, kind in (("a", "trained"), ("b", "decoded"), ("c", "human"))]
    (plot,) = plots(
        Comparison([replace(row, figures={"rep_1": nan}) if i == at else row for i, row in enumerate(rows)])
    )
    plot.figure.draw_without_rendering()
    (axes,) = plot.figure.axes
    assert axes.get_xlim()[1] == pytest.approx(0.5 * 1.32)


def test_sensitivity_draws_every_gamma_and_the_lines_across(comparison):
    def with_tokens(system: System, uniq: int) -> System:
        extra = {
            "uniq": uniq,
            "rep_window_16": 0.1,
            "rep_window_32": 0.2,
            "rep_window_128": 0.6 if system.objective == "mle" else 0.3,
        }
        return replace(system, figures={**system.figures, **extra})

    rows = [with_tokens(system, 1000 + i) for i, system in enumerate(comparison.systems)]
    found = {plot.name: plot.figure for plot in sensitivity_plots(Comparison(rows))}
    names = ["ppl", "rep", "uniq", "each", "texts"]
    assert list(found) == [*(f"sensitivity-{name}" for name in names), "trade-off-rep-window-128"]
    axes = found["sensitivity-rep"].axes[0]
    swept = next(line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_marker() == "o")
    assert swept.get_xdata().tolist() == [0.2, 0.5]
    assert swept.get_ydata().tolist() == pytest.approx([0.2, 0.2])  # (.1 + .2 + .3) / 3
    across = {line.get_label(): line.get_ydata()[0] for line in axes.lines if line.get_label() in ("MLE", "human")}
    assert across == {"MLE": pytest.approx(0.3), "human": pytest.approx(0.2)}
    assert len(found["sensitivity-each"].axes) == 3


@pytest.mark.parametrize(("people", "told"), [(9000, "human text: 9,000 ↑"), (-9000, "human text: -9,000 ↓")])
def test_people_far_from_all_models_are_a_number_at_the_edge(people, told):
    """A line there would press the models' curve flat: 1,000 to 1,300 beside 9,000."""
    rows = [System(figures={"uniq": 1000}, objective="mle"), System(figures={"uniq": people}, objective="human")]
    rows += [System(figures={"uniq": 1300 - 400 * g}, objective="sg", strength=g) for g in (0.1, 0.5)]
    (plot,) = sensitivity_plots(Comparison(rows))
    (axes,) = plot.figure.axes
    assert [text.get_text() for text in axes.texts] == [told]
    assert "human" not in [line.get_label() for line in axes.lines]
    assert axes.get_ylim()[1] < 1400
    assert plot.caption == (
        "Lines across: MLE (which is γ = 1). Where human text is far from all models, it is a number at the edge."
    )
    plot.figure.draw_without_rendering()
    box = axes.texts[0].get_window_extent()
    for line in axes.lines:
        assert not any(box.y0 < y < box.y1 for _, y in axes.transData.transform(line.get_xydata()))


def test_the_legend_names_what_any_panel_has():
    """People are far from the models in the first panel alone."""

    def figures(a: float, b: float, c: float) -> dict[str, float]:
        return {"rep_window_16": a, "rep_window_32": b, "rep_window_128": c}

    rows = [
        System(figures=figures(0.3, 0.4, 0.6), objective="mle"),
        System(figures=figures(0.17, 0.28, 0.45), objective="human"),
    ]
    rows += [
        System(figures=figures(0.29 + 0.01 * g, 0.3 + 0.1 * g, 0.4 + 0.2 * g), objective="sg", strength=g)
        for g in (0.1, 0.9)
    ]
    each = next(plot for plot in sensitivity_plots(Comparison(rows)) if plot.name == "sensitivity-each")
    assert [[text.get_text() for text in axes.texts] for axes in each.figure.axes] == [["human text: .170 ↓"], [], []]
    (legend,) = each.figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["MLE", "SG", "human"]
    assert each.caption.startswith("Lines across: MLE (which is γ = 1), human text. Where human text is far")


@pytest.mark.parametrize(
    ("people", "models", "drawn"),
    [(101.0, (100.0, 100.0), True), (100.5, (nan, 101.0), True), (nan, (100.0, 101.0), False), (5.0, (nan, nan), True)],
)
def test_people_beside_models_that_are_equal_or_not_finite(people, models, drawn):
    rows = [System(figures={"uniq": models[0]}, objective="mle"), System(figures={"uniq": people}, objective="human")]
    rows += [System(figures={"uniq": models[g > 0.1]}, objective="sg", strength=g) for g in (0.1, 0.5)]
    (plot,) = sensitivity_plots(Comparison(rows))
    (axes,) = plot.figure.axes
    plot.figure.draw_without_rendering()
    assert ("human" in [line.get_label() for line in axes.lines]) == drawn
    assert len(axes.texts) == 0


def test_pictures_follow_the_pages_colours(html):
    svgs = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(svgs) == 4
    for svg in svgs:
        assert "var(--" in svg
        assert not re.search(r"(?<!, )#(?:0072b2|222222|d55e00)", svg)  # but as what var() falls back to
        assert re.match(r"<svg[^>]*><title>[^<]+</title>", svg)
    ids = re.findall(r'id="([^"]+)"', "".join(svgs))
    assert len(ids) == len(set(ids))


def test_terminal_and_markdown(comparison):
    stream = io.StringIO()
    print_comparison(comparison, Console(file=stream, width=140), said=["First of all."])
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["Of 100 words, SG γ=0.2 repeats 44 and MLE 66. People repeat 32.", "First of all."]
    assert any(line.split() == ["SG", "γ=0.2", "14.20", ".443", ".215", ".143", "22,250"] for line in lines)
    table = markdown(comparison)
    assert "| SG γ=0.2 | 14.20 ±0.05 | **.443 ±.006** | **.215** | **.143** | **22,250** |" in table
    assert "- A note with &lt;b\\>signs&lt;/b\\>." in table
    for shown in (stream.getvalue(), table, page(comparison)):
        assert "±: standard deviation over 3 seeds." in shown
        assert "Bold: " in shown
