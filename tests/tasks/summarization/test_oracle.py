"""The greedy oracle, against scores worked out by hand and against an exhaustive greedy loop with counted n-grams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.tasks.summarization.oracle import oracle

WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join)


def test_by_hand():
    """Summary: words {a, b, c}, pairs {ab, bc}.

    Alone: "a b" 2·2/5 + 2·1/3 = 1.467; "b c d" 2·2/6 + 2·1/4 = 1.167; "c" 2·1/4 = 0.5; "e" 0.
    With "a b": + "c" 1 + 2/3 = 1.667; + "b c d" 2·3/7 + 2·2/5 = 1.657. Then "b c d" gives 2·3/7 + 2·2/5 < 1.667.
    """
    assert oracle(["b c d", "e", "a b", "c"], "a b c") == [2, 3]
    assert oracle(["b c d", "e", "a b", "c"], "a b c", most=1) == [2]


def test_pairs_lie_within_a_sentence():
    assert oracle(["a", "b", "a b"], "a b") == [2]
    assert oracle(["b a", "x"], "a\nb") == [0]  # no pair in the summary: words alone decide


def test_case_and_punctuation_do_not_count():
    assert oracle(["The CAT!", "dog"], "the, cat") == [0]


def test_nothing_in_common_takes_nothing():
    assert oracle(["a b", "c"], "x y") == []
    assert oracle([], "x") == []


def test_equal_sentences_take_the_first():
    assert oracle(["a b", "a b"], "a b") == [0]


def test_at_most_three():
    assert oracle(["a", "b", "c", "d"], "a x b y c z d") == [0, 1, 2]
    with pytest.raises(ValueError, match="most must be at least 1, not 0"):
        oracle(["a"], "a", most=0)


def f1_sum(chosen, summary):
    """ROUGE-1 + ROUGE-2 F1 by precision and recall."""
    total = 0.0
    for n in (1, 2):
        ours = {tuple(s.split()[i : i + n]) for s in chosen for i in range(len(s.split()) - n + 1)}
        theirs = {tuple(summary.split()[i : i + n]) for i in range(len(summary.split()) - n + 1)}
        both = len(ours & theirs)
        if both:
            precision, recall = both / len(ours), both / len(theirs)
            total += 2 * precision * recall / (precision + recall)
    return total


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_each_step_takes_what_helps_most(sentences, summary):
    chosen, best = [], 0.0
    for _ in range(3):
        scores = {
            place: f1_sum([sentences[i] for i in [*chosen, place]], summary)
            for place in range(len(sentences))
            if place not in chosen
        }
        if not scores or max(scores.values()) <= best + 1e-12:
            break
        best = max(scores.values())
        chosen.append(min(place for place, score in scores.items() if score > best - 1e-12))
    found = oracle(sentences, summary)
    assert f1_sum([sentences[i] for i in found], summary) == pytest.approx(best)
