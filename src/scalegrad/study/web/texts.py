"""Texts made fit to show: what a browser would act on or hide becomes a visible mark."""

from __future__ import annotations

import re
from typing import NamedTuple

_EMPTY_LINES = r"\n(?:[^\S\n]*\n){3,}"
# Control characters, and those that steer the direction of what follows: a text must not turn its neighbours around.
_UNSEEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_TO_MARK = re.compile(f"(?P<lines>{_EMPTY_LINES})|{_UNSEEN}")
# Accents piled on one letter: the first few stay.
_ACCENT = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILE = re.compile(f"({_ACCENT}{{4}}){_ACCENT}+")


class Piece(NamedTuple):
    """A stretch of text, or a mark that stands for something that cannot be shown."""

    text: str
    mark: bool = False


def readable(text: str) -> list[Piece]:
    """Cut a text into pieces to show; nothing is changed but what would not be seen, or seen wrongly.

    Control characters and direction overrides become marks, more than two empty lines in a row become one mark, and
    accents piled on one letter are thinned.

    >>> readable("a\\u202eb")
    [Piece(text='a', mark=False), Piece(text='U+202E', mark=True), Piece(text='b', mark=False)]
    >>> readable("one\\n\\n\\n\\n\\ntwo")
    [Piece(text='one\\n', mark=False), Piece(text='4 empty lines', mark=True), Piece(text='\\ntwo', mark=False)]
    >>> readable(" \\n ")
    [Piece(text='no text', mark=True)]
    """
    text = _PILE.sub(r"\1", text.replace("\r\n", "\n").replace("\r", "\n"))
    if not text.strip():
        return [Piece("no text", mark=True)]
    pieces: list[Piece] = []
    end = 0
    for found in _TO_MARK.finditer(text):
        lines = found["lines"]
        # A line of its own for the mark: one line break before it and one after it stay.
        plain = text[end : found.start() + bool(lines)]
        mark = f"{lines.count(chr(10)) - 1} empty lines" if lines else f"U+{ord(found.group()):04X}"
        pieces += [Piece(plain), Piece(mark, mark=True)] if plain else [Piece(mark, mark=True)]
        end = found.end() - bool(lines)
    return [*pieces, Piece(text[end:])] if end < len(text) else pieces


def last_words(prefix: str, most: int = 8) -> str:
    """The end of a prefix, to lead into a continuation.

    >>> last_words("The horses are brown and white.", most=3)
    '… brown and white.'
    >>> last_words("The horses", most=3)
    'The horses'
    """
    words = prefix.split()
    # A prefix in one piece (a language without spaces, a single long word) still ends somewhere.
    end = " ".join(words[-most:])[-80:]
    return f"… {end}" if end != " ".join(words) else end
