"""Where a sentence ends: rules for plain English prose, such as news and abstracts."""

from __future__ import annotations

import re

# A full stop after these ends no sentence; initials ("J. K.") and dotted letters ("U.S.") are told by their shape.
_NO_END = """mr mrs ms dr prof sen rep gov gen col lt sgt capt st jr sr hon rev maj cmdr supt insp messrs mt no vs etc
cf al fig eq sec ref refs vol pp ed eds dept inc ltd co corp approx est eg ie resp jan feb mar apr jun jul aug sept sep
oct nov dec"""
_TITLES = frozenset(_NO_END.split())
# The end of a word, closing marks, white space, and the start of what could be a sentence.
_BOUNDARY = re.compile(r"""([.!?]+)(["'”’)\]]*)(\s+)(?=["'“‘(\[]*[A-Z0-9À-Þ])""")
_LAST_WORD = re.compile(r"\S+$")


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them; a line break always ends one.

    >>> sentences("Mr. Smith met J. K. Rowling in the U.S. capital. It was late! They left.")
    ['Mr. Smith met J. K. Rowling in the U.S. capital.', 'It was late!', 'They left.']
    >>> sentences('"Who?" he said. (Nobody knew.)\\n\\nThe end')
    ['"Who?" he said.', '(Nobody knew.)', 'The end']
    """
    found = []
    for line in text.splitlines():
        start = 0
        for match in _BOUNDARY.finditer(line):
            if match[1] == "." and not match[2] and _abbreviates(line[start : match.start()]):
                continue
            found.append(line[start : match.end(2)].strip())
            start = match.end()
        found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def _abbreviates(before: str) -> bool:
    """Whether a full stop after `before` belongs to its last word."""
    last = _LAST_WORD.search(before)
    if last is None:
        return False
    word = last[0].lstrip("\"'“‘([")
    if re.fullmatch(r"[A-Z]|[A-Za-z](\.[A-Za-z])+", word):  # an initial, or dotted letters; "I." is more often an end
        return word != "I"
    return word.lower() in _TITLES
