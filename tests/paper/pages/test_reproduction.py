"""What a reproduction gave: kept in a folder and read again, as Markdown, on a terminal, on the page."""

import io
import json
import re

import pytest
from rich.console import Console

from paper.pages import Reproduction, page, read_all, read_folder, write_folder
from paper.pages.markdown import markdown
from paper.pages.terminal import print_reproduction


@pytest.fixture
def kept(found, plot, tmp_path):
    return write_folder(found, [plot], tmp_path / "wikitext")


def test_the_folder_holds_all_of_it(found, plot, kept, tmp_path):
    folder = tmp_path / "wikitext"
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["plots/line.png", "plots/line.svg", "results.json", "results.md"]
    assert (folder / "plots" / "line.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads((folder / "results.json").read_text())
    assert told["shows"] == ["table 1", "table 10", "figure 2"]
    sg = next(row for row in told["tables"][0]["rows"] if row["label"] == "SG γ=0.2")
    assert (sg["figures"]["rep_1"], sg["deviations"]["rep_1"], sg["runs"]) == (0.443, 0.006, 3)
    assert told["plots"] == [{"name": "line", "caption": "A line & nothing else."}]


def test_what_is_read_is_what_was_written(kept, tmp_path):
    again = read_folder(tmp_path / "wikitext")
    assert again.as_dict() == json.loads((tmp_path / "wikitext" / "results.json").read_text())
    assert again.pictures == kept.pictures
    assert page([again]) == page([kept])
    lost = again.tables[2].comparison.systems[0]
    assert lost.figures == {"cider": 9.0}  # a NaN was no figure
    assert lost.intervals == {"cider": (8.5, 9.5)}


def test_of_many_texts_three_are_kept_evenly_spread(kept):
    systems = {system.label: system for system in kept.tables[0].comparison.systems}
    years = [sample.prefix for sample in systems["MLE"].samples]
    assert years == ["In the year 1900 the", "In the year 1903 the", "In the year 1906 the"]
    assert [sample.prefix for sample in systems["Human"].samples] == years
    assert [len(system.samples) for system in kept.tables[1].comparison.systems] == [2, 2]  # it is about texts


def test_several_in_the_order_asked_for(found, plot, tmp_path):
    for name in ("b", "a"):
        write_folder(Reproduction(**{**vars(found), "name": name}), [], tmp_path / name)
    assert [one.name for one in read_all(tmp_path, ["a", "none", "b"])] == ["a", "b"]


@pytest.mark.parametrize("broken", ["{", "{}", '{"format": 99}', '{"format": 1, "plots": [{"name": "x"}]}'])
def test_what_is_not_one_is_refused_in_a_sentence(tmp_path, broken):
    (tmp_path / "results.json").write_text(broken)
    with pytest.raises((ValueError, FileNotFoundError), match=r"results\.json is not a reproduction|x\.svg"):
        read_folder(tmp_path)


def test_markdown_has_figures_texts_and_settings(kept):
    text = markdown(kept)
    assert text.startswith("# Open-ended &lt;generation\\>\n")
    assert "`python -m paper wikitext --scale smoke` · tables 1 and 10, figure 2 of the paper" in text
    assert "- SG stands below MLE\\_1." in text
    assert "| SG γ=0.2 | 14.20 ±0.05 | **.443 ±.006** | **.215** | **.143** | **22,250** |" in text
    assert "| UL α=1.0 | **9.00 (8.50–9.50)** |" in text
    assert "> The horses …" in text
    assert "- **MLE**: the horses are brown and white. **the horses are brown and white. the horses" in text
    assert "![A line & nothing else.](plots/line.png)" in text
    assert "- settings.seeds: 0, 1" in text
    assert "note" not in text.split("## How it was made")[1]


def test_the_terminal_shows_tables_and_marks_texts(kept):
    stream = io.StringIO()
    print_reproduction(kept, Console(file=stream, width=110, force_terminal=True, color_system="standard"))
    shown = stream.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "Open-ended <generation> (tables 1 and 10, figure 2)" in plain
    assert re.search(r"SG γ=0\.2 +14\.20 +\.443 +\.215", plain)
    assert "• A note with <b>signs</b>." in plain
    assert re.search(r"\x1b\[31mthe horses are brown and white", shown)  # red: said again
    assert "\u202e" not in shown


def test_the_page_is_whole_escaped_and_alone(kept):
    html = page([kept])
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
