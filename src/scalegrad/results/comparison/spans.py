"""Where a text says again what it said before, for marking."""

from __future__ import annotations

from typing import NamedTuple

from scalegrad.metrics import longest_loop
from scalegrad.metrics.word_tokens import WORD

RUN = 4  # words: shorter runs come back in any human text


class Piece(NamedTuple):
    """A stretch of a text, and whether it was said before."""

    text: str
    again: bool


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
    found, last = [], 0
    for start, end in repeated_spans(text):
        if start > last:
            found.append(Piece(text[last:start], False))
        found.append(Piece(text[start:end], True))
        last = end
    if last < len(text):
        found.append(Piece(text[last:], False))
    return found


def ends_stuck(text: str) -> bool:
    """Whether the text's longest loop runs to its end, give or take one word.

    >>> ends_stuck("and so it goes and so it goes and so it goes"), ends_stuck("it rained all day")
    (True, False)
    """
    loop = longest_loop(text)
    return loop is not None and loop.span is not None and len(WORD.findall(text[loop.span[1] :])) <= 1
