"""One pass over texts: figures, loops that reach the end, and which texts are quoted."""

import math
import random
import re
import zlib

import pytest

from scalegrad.results.measure import measure

HUMAN = "The lobster is caught in pots along the coast and sold fresh in the towns nearby."
STUCK = "We saw the horses. The horses are brown. The horses are brown. The horses are brown. The horses are"
ENDED = "He said no, no, no, no, no, no, and then he went home at last to sleep for the night."


def reference(texts):
    """Rep-n by sets of tuples, straight from the definition."""
    words = [re.findall(r"\w+|[^\w\s]|\n", text) for text in texts]
    words = [tokens for tokens in words if len(tokens) > 3]
    rep = {}
    for n in range(1, 5):
        shares = []
        for tokens in words:
            grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
            shares.append(1 - len(set(grams)) / len(grams))
        rep[f"rep_{n}"] = sum(shares) / len(shares)
    return rep


def test_figures_against_the_definition():
    draw = random.Random(0)
    texts = [" ".join(draw.choices(["a", "b", "c", "d", "e,", "f.", "g"], k=draw.randrange(0, 40))) for _ in range(300)]
    measured = measure(texts, "x")
    for name, value in reference(texts).items():
        assert measured.values.mean(name) == pytest.approx(value, abs=1e-12)
    assert measured.uniq_w == len({item for text in texts for item in text.split(" ")})
    assert measured.values.mean("words") == pytest.approx(sum(len(text.split()) for text in texts) / 300)
    assert measured.median_words == sorted(len(text.split()) for text in texts)[149]
    assert (measured.texts, measured.scored) == (300, sum(len(re.findall(r"\w+|[^\w\s]", t)) > 3 for t in texts))


def test_stuck_means_that_the_loop_reaches_the_end():
    measured = measure([HUMAN, STUCK, ENDED], "x")
    assert measured.values.groups("stuck").tolist() == [0.0, 1.0, 0.0]
    # The stop of "horses.", three times "The horses are brown.", and "The horses are": 1 + 15 + 3.
    loop = measured.values.groups("loop")
    assert math.isnan(loop[0])
    assert math.isnan(loop[2])
    assert loop[1] == 19


def test_a_word_cut_at_the_end_is_still_stuck():
    cut = "It was the end, it was the end, it was the end, it was the end, it was th"
    assert measure([cut], "x").values.mean("stuck") == 1.0
    assert measure([cut + " new words follow"], "x").values.mean("stuck") == 0.0


def test_compression_is_bytes_before_over_after():
    line = (STUCK + "\n").encode()
    assert measure([STUCK], "x").values.mean("compression") == pytest.approx(len(line) / len(zlib.compress(line, 9)))


def test_clean_up_makes_spaced_and_tight_texts_equal():
    spaced, tight = (
        measure(["It 's late , they run . It 's late ."], "x"),
        measure(["It's late, they run. It's late."], "x"),
    )
    assert spaced.uniq_w == tight.uniq_w == 5
    assert spaced.values.mean("words") == tight.values.mean("words") == 6


def test_worst_are_those_with_the_longest_loops_wherever_they_stand(monkeypatch):
    monkeypatch.setattr("scalegrad.metrics.word_tokens.BATCH_CHARACTERS", 200)  # many batches
    texts = [HUMAN] * 40
    texts[30], texts[7], texts[22] = "go on " * 50, "go on " * 20, "go on " * 30
    worst = measure(texts, "x", worst=3).worst
    assert [(quote.number, quote.loop_tokens) for quote in worst] == [(31, 100), (23, 60), (8, 40)]
    assert worst[2].cycle_tokens == 2
    assert worst[2].repeats == 20.0


def test_text_without_a_loop_is_quoted_by_its_repetition_and_short_ones_never():
    worst = measure(["one two three four", "one two one four", "no"], "x", worst=3).worst
    assert [(quote.number, quote.loop, quote.rep_1) for quote in worst] == [(2, "", 0.25), (1, "", 0.0)]


def test_long_texts_are_quoted_in_part():
    text = "start " + "x1 y2 " * 10_000 + "z " * 500
    (quote,) = measure([text], "x", worst=1).worst
    assert quote.before == "start "
    assert quote.loop.startswith("x1 y2 x1")
    assert quote.loop.endswith("…")
    assert len(quote.loop) + len(quote.after) < 400


def test_the_quote_shows_the_repetition_of_a_long_cycle():
    cycle = " ".join(f"word{number}" for number in range(120)) + ". "
    (quote,) = measure(["A beginning that is long enough to be cut before the loop. " + cycle * 3], "x", worst=1).worst
    assert quote.loop.count("word0 word1") == 2
    assert len(quote.before) <= 61
    assert len(quote.loop) < 350


def test_a_loop_is_counted_as_its_finder_counts():
    """Four words of punctuation are eight tokens, and no loop is shorter."""
    measured = measure(["It goes on, no, no, no, no,"], "x")
    assert measured.values.mean("loop") >= 8
    assert measured.worst[0].loop_tokens == measured.values.mean("loop")
    assert measured.worst[0].tokens == 12


def test_no_texts_at_all():
    measured = measure([], "x")
    assert (measured.texts, measured.median_words, measured.worst) == (0, 0, [])
