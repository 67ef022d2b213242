"""Texts made fit to show: what a browser would act on or hide becomes a visible mark."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

# Characters that steer the direction of what follows; a text must not turn itself or its neighbours around.
_STEERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){3,}")
# How many signs may stack on one letter before the rest is left out.
_MOST_ACCENTS = 4


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
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return [Piece("no text", mark=True)]
    pieces: list[Piece] = []
    end = 0
    for gap in _EMPTY_LINES.finditer(text):
        pieces += _visible(text[end : gap.start()] + "\n")
        pieces.append(Piece(f"{gap.group().count(chr(10)) - 1} empty lines", mark=True))
        text_after = "\n"
        end = gap.end() - len(text_after)
    return pieces + _visible(text[end:])


def _visible(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    plain: list[str] = []
    accents = 0
    for sign in text:
        accents = accents + 1 if unicodedata.combining(sign) else 0
        if accents > _MOST_ACCENTS:
            continue
        if sign in "\n\t" or (unicodedata.category(sign) != "Cc" and sign not in _STEERING):
            plain.append(sign)
            continue
        if plain:
            pieces.append(Piece("".join(plain)))
            plain = []
        pieces.append(Piece(f"U+{ord(sign):04X}", mark=True))
    return [*pieces, Piece("".join(plain))] if plain else pieces


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
