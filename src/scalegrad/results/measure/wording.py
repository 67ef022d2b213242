"""Figures and texts as words: how the terminal and the page write them."""

from __future__ import annotations

import unicodedata

from scalegrad.counts import counted
from scalegrad.results.measure.measurement import Quote
from scalegrad.results.measure.side_by_side import MeasureReport

# What a column is called, and what it is, for a reader who sees it for the first time.
TITLES = {
    "rep_1": "Rep-1",
    "rep_2": "Rep-2",
    "rep_3": "Rep-3",
    "rep_4": "Rep-4",
    "uniq_w": "uniq-w",
    "diversity": "diversity",
    "stuck": "stuck",
    "loop": "loop",
    "compression": "compression",
    "words": "words",
    "texts": "texts",
}
MEANINGS = {
    "rep_1": "share of a text's words said before in it; Rep-n: of its runs of n words",
    "uniq_w": "distinct words over all texts",
    "diversity": "(1 − Rep-2)(1 − Rep-3)(1 − Rep-4)",
    "stuck": "share of the texts that end in a loop",
    "loop": "tokens (words and punctuation marks) of that loop, where there is one",
    "compression": "how many times shorter zlib makes a text",
    "words": "words a text",
}


_TURNS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}  # change the direction of a text


def describe(quote: Quote) -> str:
    """What is wrong with a quoted text, in words; a token is a word or a punctuation mark, as for the loop finder.

    >>> describe(Quote(7, "a ", "b c b c b c b c", "", tokens=9, loop_tokens=8, repeats=4.0, rep_1=2 / 3))
    '8 of its 9 tokens are a loop: 2 tokens, said 4 times'
    """
    if not quote.loop:
        return f"no loop; Rep-1 {number('rep_1', quote.rep_1)}"
    times = f"{quote.repeats:.1f}".removesuffix(".0")
    cycle = counted(quote.cycle_tokens, "token")
    return f"{quote.loop_tokens:,} of its {quote.tokens:,} tokens are a loop: {cycle}, said {times} times"


def number(name: str, value: float) -> str:
    """A figure as the tables print it.

    >>> number("rep_1", 0.66149), number("stuck", 0.4475), number("words", 80.2), number("loop", float("nan"))
    ('.661', '44.8%', '80', '–')
    """
    if value != value:
        return "–"
    if name == "stuck":
        return f"{value:.1%}"
    if name in ("loop", "words"):
        return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
    if name == "compression":
        return f"{value:.2f}"
    return f"{value:.3f}".replace("0.", ".", 1) if value < 1 else f"{value:.3f}"


def spread(name: str, low: float, high: float) -> str:
    """Half the width of an interval.

    >>> spread("rep_1", 0.510, 0.542), spread("rep_1", 0.0040, 0.0046)
    ('.016', '<.001')
    """
    half, finest = (high - low) / 2, {"compression": 0.01, "loop": 0.1, "words": 0.1}.get(name, 0.001)
    return number(name, half) if half >= finest / 2 else "<" + number(name, finest)


def signed(name: str, value: float) -> str:
    """A difference, with its sign.

    >>> signed("rep_1", -0.1541), signed("stuck", 0.02)  # of two shares: percentage points
    ('−.154', '+2.0 pts')
    """
    if value != value:
        return "–"
    return ("−" if value < 0 else "+") + number(name, abs(value)).replace("%", " pts")


def p_value(value: float) -> str:
    """A p-value, not finer than the test can tell.

    >>> p_value(0.0004997), p_value(0.0213)
    ('< .001', '.021')
    """
    return "< .001" if value < 0.001 else number("p", value)


def printable(text: str) -> str:
    """The text with line breaks shown as ⏎, and as � whatever could steer a terminal or turn the text around.

    Format characters that only shape what stands beside them, such as the joiner inside an emoji, stay.

    >>> printable("a\\nb\\x1b[31m"), printable("👩\\u200d🚀") == "👩\\u200d🚀"
    ('a⏎b�[31m', True)
    """
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def _shown(sign: str) -> str:
    category = "" if sign.isprintable() else unicodedata.category(sign)
    if not category or (category == "Cf" and sign not in _TURNS):
        return sign
    return "⏎" if sign in "\n\u2028\u2029" else " " if category == "Zs" or sign == "\t" else "\ufffd"


def sentences(report: MeasureReport) -> list[str]:
    """What the table says of each system, in a sentence."""
    said = []
    for row in report.rows:
        if row.human or not row.scored:
            continue
        sentence = f"{row.name}: {row.figures['stuck'].mean:.0%} of the texts end stuck in a loop"
        share = f"{100 * row.figures['rep_1'].mean:.0f}"
        again = f"of 100 words {share} {'was' if share == '1' else 'were'} said before in the same text"
        if near := report.human_row(row):
            sentence += f" (human text: {near.figures['stuck'].mean:.0%})"
            again += f" (human text: {100 * near.figures['rep_1'].mean:.0f})"
        said.append(f"{sentence}; {again}.")
    return said
