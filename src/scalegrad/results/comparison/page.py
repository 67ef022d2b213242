"""A comparison as one HTML page that needs nothing else, in light and dark. Texts are a stranger's: all is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalegrad._version import __version__
from scalegrad.extras import need
from scalegrad.metrics import clean_up_spaces, longest_loop, repetition
from scalegrad.metrics.word_tokens import WORD
from scalegrad.results.comparison.colours import Look, looks
from scalegrad.results.comparison.columns import (
    COLUMNS,
    Column,
    best,
    column,
    further_columns,
    legend,
    main_columns,
    written,
    written_spread,
)
from scalegrad.results.comparison.plots import plots
from scalegrad.results.comparison.systems import Comparison, Sample, System
from scalegrad.results.comparison.terminal import headline
from scalegrad.results.figure import Plot, inline_svg, svg_width
from scalegrad.results.measure.wording import printable
from scalegrad.runs import flat_config, write_text

EXAMPLES = 6
RUN = 4  # words that come back are marked from this many on: shorter runs come back in any human text


class Piece(NamedTuple):
    """A stretch of a text, and whether it was said before."""

    text: str
    again: bool


class Continuation(NamedTuple):
    """A text of the page: whose, in pieces that are marked or not, and what is to be said of it."""

    label: str
    look: Look
    pieces: list[Piece]
    rep_1: float | None
    stuck: bool
    others: list[str]  # further references, where several people wrote one


class Example(NamedTuple):
    """A beginning, or a picture, and its continuations; or an article and its summaries."""

    prefix: str
    texts: list[Continuation]
    picture: str = ""
    article: bool = False


class Laid(NamedTuple):
    """A comparison as a page shows it: columns by group, what is left out, rows with their looks, best places."""

    comparison: Comparison
    main: dict[str, list[str]]
    further: list[str]
    rows: list[tuple[System, Look]]
    best: dict[str, set[int]]
    legend: str

    @property
    def names(self) -> list[str]:
        """The columns of the main table."""
        return [name for group in self.main.values() for name in group]


def lay_out(comparison: Comparison) -> Laid:
    """What the macro `side_by_side` draws a table of."""
    systems = list(comparison.systems)
    main, further = main_columns(systems), further_columns(systems)
    names = [name for group in (*main.values(), further) for name in group]
    rows = list(zip(systems, looks(systems), strict=True))
    marked = {name: best(comparison, name) for name in names}
    return Laid(comparison, main, further, rows, marked, legend(comparison, names))


def page(comparison: Comparison, extra_plots: Sequence[Plot] = (), title: str = "", said: Sequence[str] = ()) -> str:
    """The page as HTML. `extra_plots` come first; `said` are sentences to put under the headline."""
    shown = lay_out(comparison)
    return render(
        "page.html.j2",
        comparison=comparison,
        shown=shown,
        headline=title or headline(comparison),
        said=said,
        tiles=tiles(comparison),
        pictures=[
            (plot.caption, inline_svg(plot.figure, plot.name, plot.caption))
            for plot in (*extra_plots, *plots(comparison))
        ],
        examples=examples(comparison),
        made=how_it_was_made(comparison),
        meanings=meanings([*shown.names, *shown.further]),
    )


def render(template: str, folder: Path | None = None, **values: Any) -> str:
    """A template of this package, or of `folder`, which may use this package's parts; `values` are escaped."""
    jinja2 = need("jinja2", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([path for path in (folder, Path(__file__).parent) if path]),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters |= {"printable": printable, "in_lines": _in_lines, "svg_width": svg_width}
    environment.filters["setting"] = written_setting
    environment.globals.update(written=written, spread=written_spread, column=column, version=__version__)
    html: str = environment.get_template(template).render(**values)
    return html


def write_page(comparison: Comparison, path: str | Path, extra_plots: Sequence[Plot] = (), **words: Any) -> Path:
    """Write the page to `path`, whole or not at all; `words` as for `page`."""
    write_text(path, page(comparison, extra_plots, **words))
    return Path(path)


class Tile(NamedTuple):
    """A figure large on the page: from the baseline to the favourite, and what to hold it against."""

    title: str
    before: str
    after: str
    beside: str


def tiles(comparison: Comparison) -> list[Tile]:
    """The figures a reader should take home, as far as they are there."""
    base, favourite, human = comparison.baseline, comparison.favourite, comparison.human
    if base is None or favourite is None:
        return []
    wanted = {"rep_1": "words said again", "rep_3": "three-word runs again"}
    wanted |= {"uniq_w": "distinct words", "ppl": "plain perplexity"}
    found = []
    for name, title in wanted.items():
        if name in base.figures and name in favourite.figures:
            before, after = base.figures[name], favourite.figures[name]
            goal = human.figures.get(name) if human else None
            beside = f"{after / before - 1:+.1%}" if goal is None else f"human text {_large(name, goal)}"
            found.append(Tile(title, _large(name, before), _large(name, after), beside))
    return found


def examples(comparison: Comparison, count: int = EXAMPLES, shown: Sequence[System] | None = None) -> list[Example]:
    """`count` beginnings that every system with texts continued, evenly spread over the set: nobody chose them.

    The texts are those of the systems `shown`; by default the baseline's, those of the model of each objective that is
    nearest to human text, of the baseline under the favourite's penalty, and of people.
    """
    shown = [system for system in (comparison.spoken_of if shown is None else shown) if system.samples]
    systems = list(comparison.systems)
    styles = [look for system, look in zip(systems, looks(systems), strict=True) if any(system is s for s in shown)]
    texts = [{sample.prefix: sample for sample in system.samples} for system in shown]
    pictures = {sample.prefix: sample.picture for system in shown for sample in system.samples if sample.picture}
    return [
        Example(
            readable(prefix),
            [_continuation(system, look, own[prefix]) for system, look, own in zip(shown, styles, texts, strict=True)],
            pictures.get(prefix, ""),
            any(own[prefix].references for own in texts),
        )
        for prefix in spread_prefixes(shown, count)
    ]


def spread_prefixes(systems: Sequence[System], count: int = EXAMPLES) -> list[str]:
    """At most `count` of the prefixes that all these systems continued, evenly spread over them.

    >>> from scalegrad.results.comparison import Sample
    >>> texts = [System(name, samples=[Sample(prefix, "") for prefix in "abcdef"]) for name in ("MLE", "SG")]
    >>> spread_prefixes(texts, 3)
    ['a', 'c', 'e']
    """
    continued = [{sample.prefix: None for sample in system.samples} for system in systems]
    prefixes = [prefix for prefix in (continued[0] if continued else ()) if all(prefix in own for own in continued)]
    count = min(count, len(prefixes))
    return [prefixes[len(prefixes) * i // count] for i in range(count)]


def how_it_was_made(comparison: Comparison) -> dict[str, Any]:
    """Settings that all runs share, those that differ (a value for each of "labels"), and the machines by label."""
    made = [system for system in comparison.of_kind("trained") if system.made]
    configs = [flat_config(system.made.get("config", {})) for system in made]
    values = {key: [config.get(key) for config in configs] for config in configs for key in config}
    own = {key: each for key, each in values.items() if any(value != each[0] for value in each)}
    shared = {key: each[0] for key, each in values.items() if key not in own}
    machines = []
    for system in made:
        for start in system.made.get("environment", {}).get("starts", [])[-1:]:
            about = {key: value for key, value in flat_config(start).items() if value not in ("", None)}
            machines.append((system.label, about | flat_config({"result": system.made.get("done", {})})))
    return {"shared": shared, "own": own, "labels": [system.label for system in made], "machines": machines}


def written_setting(value: Any) -> str:
    """A setting as people write it.

    >>> [written_setting(value) for value in (["data/pc.jsonl"], None, True, 0.0003, ["a", "b"], [])]
    ['data/pc.jsonl', '–', 'yes', '0.0003', 'a, b', '–']
    """
    if isinstance(value, (list, tuple)):
        return ", ".join(map(written_setting, value)) or "–"
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _continuation(system: System, look: Look, sample: Sample) -> Continuation:
    rep_1 = repetition([clean_up_spaces(sample.continuation)])["rep_1"]
    shown = readable(sample.continuation)
    others = [readable(text) for text in sample.references[1:]] if system.kind == "human" else []
    return Continuation(system.label, look, pieces(shown), None if rep_1 != rep_1 else rep_1, ends_stuck(shown), others)


def repeated_spans(text: str, run: int = RUN) -> list[tuple[int, int]]:
    """Characters of the words that belong to a run of `run` words already said earlier in the text, joined up.

    Words are the metrics' own: `\\w+`, a punctuation mark, or a line end.

    >>> text = "The sky is very blue. The sky is very dark."
    >>> [text[start:end] for start, end in repeated_spans(text)]
    ['The sky is very']
    """
    matches = list(WORD.finditer(text))
    words = [match.group() for match in matches]
    known: set[tuple[str, ...]] = set()
    marked = [False] * len(words)
    for end in range(run, len(words) + 1):
        gram = tuple(words[end - run : end])
        if gram in known:
            marked[end - run : end] = [True] * run
        known.add(gram)
    spans: list[tuple[int, int]] = []
    for at, match in enumerate(matches):
        if not marked[at]:
            continue
        if at and marked[at - 1]:
            spans[-1] = (spans[-1][0], match.end())
        else:
            spans.append(match.span())
    return spans


def pieces(text: str) -> list[Piece]:
    """The text cut at its repeated spans.

    >>> pieces("so it goes on and so it goes on")
    [Piece(text='so it goes on and ', again=False), Piece(text='so it goes on', again=True)]
    """
    cut, last = [], 0
    for start, end in repeated_spans(text):
        if start > last:
            cut.append(Piece(text[last:start], False))
        cut.append(Piece(text[start:end], True))
        last = end
    if last < len(text):
        cut.append(Piece(text[last:], False))
    return cut


def ends_stuck(text: str) -> bool:
    """Whether the text's longest loop runs to its end, give or take one word.

    >>> ends_stuck("and so it goes and so it goes and so it goes"), ends_stuck("it rained all day")
    (True, False)
    """
    loop = longest_loop(text)
    return loop is not None and loop.span is not None and len(WORD.findall(text[loop.span[1] :])) <= 1


def readable(text: str) -> str:
    """As a reader wants it: without the spaces and marks that tokenised corpora put around punctuation."""
    for mark in (" @-@ ", " @,@ ", " @.@ "):
        text = text.replace(mark, mark[2])
    return re.sub(r"\s*\n\s*", "\n", clean_up_spaces(text)).strip()


def _in_lines(text: str) -> str:
    """What may be shown of a stranger's text, its line breaks kept."""
    return "\n".join(map(printable, text.split("\n")))


def _large(name: str, value: float) -> str:
    if column(name).form == "share":
        return f"{100 * value:.0f}%"
    if column(name).form == "count" and value >= 1000:
        return f"{value / 1000:.1f}k"
    return written(name, value)


def meanings(names: Iterable[str]) -> list[Column]:
    """The columns that have something to explain, each once."""
    return [COLUMNS[name] for name in dict.fromkeys(names) if name in COLUMNS]
