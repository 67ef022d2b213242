"""What is marked as said before, against a search that looks at every place."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from scalegrad.results.comparison.page import ends_stuck, pieces, repeated_spans


def marked_words(words: list[str], run: int) -> set[int]:
    """Places of words inside a run that stands, word for word, somewhere earlier in the list."""
    found = set()
    for end in range(run, len(words) + 1):
        start = end - run
        if any(words[other : other + run] == words[start:end] for other in range(start)):
            found |= set(range(start, end))
    return found


@given(st.lists(st.sampled_from("abc.,"), max_size=40), st.integers(2, 5))
def test_every_repeated_run_is_marked_and_nothing_else(words, run):
    text = " ".join(words)
    found = repeated_spans(text, run)
    places = [match.start() for match in re.finditer(r"\S", text)]
    covered = {i for i, at in enumerate(places) if any(start <= at < end for start, end in found)}
    assert covered == marked_words(words, run)
    assert all(a < b for a, b in found)
    assert all(first[1] < second[0] for first, second in pairwise(found))


@given(st.text(alphabet="ab \n.", max_size=60))
def test_pieces_are_the_text(text):
    assert "".join(piece.text for piece in pieces(text)) == text


def test_a_loop_to_the_end_is_stuck():
    assert ends_stuck("well, the horses are brown. the horses are brown. the horses are brown. the")
    assert not ends_stuck("the horses are brown. the horses are brown. And then the night came over the hills.")
