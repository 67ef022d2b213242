"""What a reader sees: the terminal's tables and the page, with texts that try to break out."""

import io
from html.parser import HTMLParser

import pytest
from rich.console import Console

from scalegrad.results.measure import build_report, measure
from scalegrad.results.measure.page import page, write_page
from scalegrad.results.measure.terminal import print_report
from scalegrad.results.measure.wording import MEANINGS, TITLES, printable, sentences

EVIL = '<script>alert(1)</script> \x1b[31m[bold]"&\u202e ' + "say it again now " * 10
REPORT = build_report(
    [measure([EVIL] * 20, "<b>mle</b>"), measure(["a plain text with ten words in it, or so."] * 20, "sg")]
)


def printed(width, **options):
    out = io.StringIO()
    print_report(REPORT, Console(file=out, width=width, **options))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_every_figure_and_name_is_legible_at_any_width(width):
    text = printed(width)
    for expected in ("<b>mle</b>", "sg", "human (", "Rep-1", "uniq-w", "100.0%", "Worst texts of sg"):
        assert expected in text
    assert "…" not in text.split("•")[0].split("Worst")[0]  # no cell was cut


def test_terminal_shows_no_control_characters_and_marks_the_loop():
    text = printed(100)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text  # a text's brackets are its own, not markup
    assert "⟪say it again" in text
    coloured = printed(100, force_terminal=True, color_system="standard")
    assert "\x1b[1;31msay it" in coloured
    assert "⟪" not in coloured


@pytest.mark.parametrize("width", [60, 140])
def test_legend_and_columns_use_the_same_words(width):
    text = " ".join(printed(width).split())
    for name in MEANINGS:
        assert f"{TITLES[name]}: " in text
        assert f" {TITLES[name]} " in text


@pytest.mark.parametrize("sign", ["\u200d", "\u200c", "\u00ad", "\u200f", "\ufe0f", "\U000e0067"])
def test_harmless_format_characters_stay(sign):
    assert printable(f"a{sign}b") == f"a{sign}b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\u00a0b\tc", "a b c"), ("a\r\nb\u2028c", "a⏎b⏎c"), ("\u202e\u2066\x07\x9b\ud800", "\ufffd" * 5)],
)
def test_spaces_line_breaks_and_what_could_do_harm(text, shown):
    assert printable(text) == shown


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.marked = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "mark":
            self.marked.append(data)
            self.tags.append("")


def test_one_word_of_a_hundred_is_said_in_the_singular():
    (said,) = sentences(build_report([measure([" ".join([*map(str, range(99)), "0"])] * 3, "x")]))
    assert "of 100 words 1 was said before" in said


def test_page_is_whole_escaped_and_alone():
    html = page(REPORT)
    tags = Tags()
    tags.feed(html)
    assert not {"script", "b", "img", "link", "iframe"} & set(tags.tags)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b&gt;mle&lt;/b&gt; − sg" not in html
    assert "sg − &lt;b&gt;mle&lt;/b&gt;, text by text" in html
    assert tags.marked[0].startswith("say it again now say it")
    assert "http" not in html.replace('http-equiv="Content-Security-Policy"', "")
    assert "prefers-color-scheme: dark" in html
    assert "\x1b" not in html


def test_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_page(REPORT, path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ValueError, match=r"its folder .* does not exist"):
        write_page(REPORT, tmp_path / "no" / "report.html")
