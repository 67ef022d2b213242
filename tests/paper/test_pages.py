"""What an experiment gave: in a folder, on a terminal, on the page."""

import io
import json
import re

import pytest
from rich.console import Console

from paper.outcome import Experiment, Outcome, Shown
from paper.pages import Part, as_dict, print_part, write_page, write_part
from scalegrad.results.comparison import Comparison, Plot, Sample, System
from scalegrad.results.figure import new_figure, style_axes
from scalegrad.runs import Row, read_rows
from tests.browsers import browser
from tests.pages import check_page
from tests.results.comparison.conftest import HOSTILE, LOOP, comparison

__all__ = ["browser", "comparison"]


@pytest.fixture
def part(comparison):
    figure = new_figure(8, 3)
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4])
    style_axes(axes, title="A line", x="x", y="y")
    mle = [Sample("The horses", LOOP), Sample("A town", " by a sea.")]
    sg = [Sample("The horses", " ran & ran."), Sample("A town", HOSTILE)]
    texts = [
        System(objective="mle", figures={"rep_1": 0.6}, samples=mle),
        System(objective="sg", strength=0.2, figures={"rep_1": 0.4}, kind="paper", suffix=", in the paper", samples=sg),
    ]
    spread = System(objective="ul", strength=1.0, figures={"cider": 9.0}, intervals={"cider": (8.5, 9.5)}, runs=2)
    judged = Comparison([spread, System(objective="mle", figures={"cider": 8.0})], notes=["A note with <b>signs</b>."])
    outcome = Outcome(
        [Shown("Main table", comparison), Shown("Texts", Comparison(texts), texts=True), Shown("Judged", judged)],
        [Plot("line", "A line & nothing else.", figure)],
        ["SG stands below MLE_1."],
        {"model": "base", "settings": {"seeds": [0, 1], "note": None}},
        [Row("rep_1", 0.443, objective="sg", strength=0.2, run="sg-0.2-seed-0"), Row("rep_1", None, objective="mle")],
    )
    shows = ("table 1", "table 10", "figure 2")
    return Part(Experiment("wikitext", "Open-ended <generation>", shows, lambda setup: outcome), "smoke", outcome)


def test_the_folder_holds_all_of_it(part, tmp_path):
    folder = tmp_path / "wikitext"
    write_part(part, folder)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    records = ["environment.json", "part.html"]
    assert files == [*records, "plots/line.png", "plots/line.svg", "results.jsonl", "texts.jsonl"]
    assert (folder / "plots" / "line.png").read_bytes().startswith(b"\x89PNG")
    about = json.loads((folder / "environment.json").read_text())
    assert (about["experiments"], about["shows"][0], about["scale"]) == (["wikitext"], "table 1", "smoke")
    assert about["plots"] == [{"name": "line", "caption": "A line & nothing else."}]
    assert read_rows(folder / "results.jsonl") == list(part.outcome.rows)
    texts = [json.loads(line) for line in (folder / "texts.jsonl").read_text().splitlines()]
    assert texts[-1] == {
        "run": "paper",
        "objective": "sg",
        "strength": 0.2,
        "prefix": "A town",
        "continuation": HOSTILE,
    }


def test_of_many_texts_three_are_shown_evenly_spread(part):
    systems = {system.label: system for system in part.tables[0].comparison.systems}
    years = [sample.prefix for sample in systems["MLE"].samples]
    assert years == ["In the year 1900 the", "In the year 1903 the", "In the year 1906 the"]
    assert [sample.prefix for sample in systems["Human"].samples] == years
    assert [len(system.samples) for system in part.tables[1].comparison.systems] == [2, 2]  # it is about texts


def test_the_terminal_shows_tables_and_marks_texts(part):
    stream = io.StringIO()
    print_part(part, Console(file=stream, width=110, force_terminal=True, color_system="standard"))
    shown = stream.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "Open-ended <generation> (tables 1 and 10, figure 2)" in plain
    assert re.search(r"SG γ=0\.2 +14\.20 +\.443 +\.215", plain)
    assert "• A note with <b>signs</b>." in plain
    assert re.search(r"\x1b\[31mthe horses are brown and white", shown)  # red: said again
    assert "\u202e" not in shown


def test_machines_get_rows_and_figures(part):
    told = as_dict(part)
    assert told["tables"][0]["systems"]["SG γ=0.2"]["rep_1"] == 0.443
    assert told["rows"][0]["strength"] == 0.2


def test_the_page_has_the_parts_there_are_whole_and_escaped(part, tmp_path):
    write_part(part, tmp_path / "wikitext")
    html = write_page(tmp_path, ["none", "wikitext"]).read_text()
    assert "://" not in re.sub(r"http://www\.w3\.org/[\w/]+", "", html)
    assert "<script" not in html
    assert "Open-ended &lt;generation&gt;" in html
    assert '<a href="#wikitext">' in html
    assert "Tables 1 and 10, figure 2" in html
    row = re.search(r'<th scope="row">[^\n]*SG γ=0\.2</th>\n(.*?)</tr>', html, re.DOTALL).group(1)
    assert re.sub(r"<[^>]+>|\s", " ", row).split() == ["14.20", "±0.05", ".443", "±.006", ".215", ".143", "22,250"]
    assert html.count('<figure class="panel broad"') == 1
    assert "<mark>the horses are brown and white." in html
    assert "settings.seeds</dt><dd>0, 1</dd>" in html
    assert "settings.note" not in html


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_follows_the_readers_colours(browser, part, tmp_path, width, scheme):
    write_part(part, tmp_path / "wikitext")
    path = write_page(tmp_path, ["wikitext"])
    with check_page(browser, path, width, scheme, "reproduction") as shown:
        shown.get_by_role("link", name="Open-ended <generation>").click()
        assert shown.evaluate("location.hash") == "#wikitext"
        assert shown.locator("details[open] mark").first.is_visible()  # the texts of a table about texts lie open
