from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.metrics import Loop, longest_loop, longest_loops, words


def naive_longest(tokens: Sequence[object], min_tokens: int, min_repeats: float) -> tuple[int, int, int] | None:
    """Try every period and every start, and walk on while the period holds."""
    best: tuple[int, int, int] | None = None  # (−length, period, start): the smallest wins
    for period in range(1, len(tokens) // 2 + 1):
        for start in range(len(tokens) - period):
            end = start + period
            while end < len(tokens) and tokens[end] == tokens[end - period]:
                end += 1
            length = end - start
            if length >= max(min_tokens, min_repeats * period):
                found = (-length, period, start)
                best = found if best is None else min(best, found)
    return best and (best[2], best[1], -best[0])


def as_tuple(loop: Loop | None) -> tuple[int, int, int] | None:
    return loop and (loop.start, loop.period, loop.length)


few_tokens = st.integers(1, 4).flatmap(lambda kinds: st.lists(st.integers(0, kinds - 1), max_size=40))
stuck_tokens = st.tuples(few_tokens, few_tokens, st.integers(0, 6), few_tokens).map(
    lambda parts: parts[0] + parts[1] * parts[2] + parts[3]
)


@settings(max_examples=400)
@given(st.one_of(few_tokens, stuck_tokens), st.integers(2, 12), st.sampled_from([2, 2.5, 3, 5]))
def test_longest_loop_against_every_period_and_start(tokens: list[int], min_tokens: int, min_repeats: float) -> None:
    expected = naive_longest(tokens, min_tokens, min_repeats)
    assert as_tuple(longest_loop(tokens, min_tokens, min_repeats)) == expected


@given(st.lists(st.lists(st.sampled_from(["a", "b", "a.", "\n"]), max_size=30).map(" ".join), max_size=6))
def test_many_texts_at_once_are_each_text_alone(texts: list[str]) -> None:
    for text, loop in zip(texts, longest_loops(texts, min_tokens=4), strict=True):
        tokens = words(text)
        assert as_tuple(loop) == naive_longest(tokens, 4, 2)
        if loop:
            assert words(text[slice(*loop.span)]) == tokens[loop.start : loop.start + loop.length]


def test_the_paper_s_horses() -> None:
    text = "There are three horses. The horses are brown and white. The horses are brown and white. They run."
    loop = longest_loop(text)
    assert loop == Loop(start=4, period=7, length=15, span=(22, 87))
    assert text[22:87] == ". The horses are brown and white. The horses are brown and white."
    assert loop.repeats == pytest.approx(15 / 7)
    assert loop.characters == 65


def test_thousands_of_words_take_no_time_to_speak_of() -> None:
    words_before = [str(number) for number in range(5000)]
    stuck = [*words_before, *["and", "so", "on", ","] * 1250]
    assert as_tuple(longest_loop(stuck)) == (5000, 4, 5000)


def test_bad_bounds_are_named() -> None:
    with pytest.raises(ValueError, match="min_repeats must be at least 2, not 1"):
        longest_loop("a", min_repeats=1)
    with pytest.raises(ValueError, match="min_tokens must be at least 2, not 0"):
        longest_loops(["a"], min_tokens=0)
