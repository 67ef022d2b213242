from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import human_next_token, next_token, repetition
from scalegrad.metrics import predictions as module

chunk = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 1, 2, 3, 4, 5, -100])), max_size=25)
some_windows = st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True)


def naive_next_token(guesses: list[list[int]], golds: list[list[int]], windows: list[int]) -> dict[str, float]:
    """The definition, one position and one window at a time."""
    rep = dict.fromkeys(windows, 0)
    wrong = dict.fromkeys(windows, 0)
    distinct, correct, total = set(), 0, 0
    for guess, gold in zip(guesses, golds, strict=True):
        for t, target in enumerate(gold):
            if target == -100:
                continue
            total += 1
            correct += guess[t] == target
            distinct.add(guess[t])
            for l in windows:
                if guess[t] in gold[max(0, t - l) : t]:
                    rep[l] += 1
                    wrong[l] += guess[t] != target
    figures = {f"rep_window_{l}": rep[l] / total for l in windows}
    figures |= {f"wrong_rep_window_{l}": wrong[l] / total for l in windows}
    return figures | {"uniq": len(distinct), "accuracy": correct / total}


@given(
    st.lists(chunk, min_size=1, max_size=6), some_windows, st.sampled_from([2, 5, 1024]), st.sampled_from([8, 1 << 16])
)
def test_next_token_against_the_definition(
    chunks: list[list[tuple[int, int]]], windows: list[int], row: int, block: int
) -> None:
    guesses = [[guess for guess, _ in pairs] for pairs in chunks]
    golds = [[gold for _, gold in pairs] for pairs in chunks]
    if all(gold == -100 for golds_of_one in golds for gold in golds_of_one):
        with pytest.raises(ValueError, match="at least one id other than ignore_index"):
            next_token(guesses, golds, windows)
        return
    with pytest.MonkeyPatch.context() as patch:  # small rows and blocks: every seam is crossed
        patch.setattr(module, "_ROW", row)
        patch.setattr(module, "_BLOCK", block)
        assert next_token(guesses, golds, windows) == pytest.approx(naive_next_token(guesses, golds, windows))


@pytest.mark.parametrize("top", [50_256, (1 << 19) + 5, (1 << 24) - 1])
def test_tables_and_chunks_longer_than_a_row(top: int) -> None:
    generator = np.random.default_rng(0)
    gold = generator.choice(np.append(generator.integers(0, top, 300), top), (3, 2500))
    guess = np.where(generator.random(gold.shape) < 0.4, gold, np.roll(gold, 7, axis=1))
    gold[:, ::13] = -100
    expected = naive_next_token(guess.tolist(), gold.tolist(), [16, 32, 128])
    for cast in (lambda x: x, lambda x: x.astype(np.int32), torch.as_tensor, lambda x: x.tolist(), lambda x: list(x)):
        assert next_token(cast(guess), cast(gold)) == pytest.approx(expected)
    one = next_token(guess[0], gold[0])
    assert one == pytest.approx(naive_next_token(guess[:1].tolist(), gold[:1].tolist(), [16, 32, 128]))


def test_no_key_is_shared_with_the_repetition_of_texts() -> None:
    """`rep_1` is of n-grams alone: merged into one row, a window of 1 replaced it."""
    windows = next_token([[5, 5, 5, 6]], [[5, 6, 5, 6]], windows=(1, 2, 3, 4))
    assert (windows["rep_window_1"], windows["rep_window_2"], windows["wrong_rep_window_2"]) == (0.25, 0.75, 0.25)
    words = repetition(["a b a b"])
    assert words["rep_1"] == 0.5
    assert not set(windows) & set(words)
    assert not set(human_next_token([[5, 6]], windows=(1, 2, 3, 4))) & set(words)


def test_predictions_under_ignored_targets_may_be_anything() -> None:
    assert next_token([[-1, 3]], [[-100, 3]], windows=(1,))["accuracy"] == 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), some_windows)
def test_human_row_is_gold_as_prediction(gold: list[int], windows: list[int]) -> None:
    expected = naive_next_token([gold], [gold], windows)
    figures = human_next_token([gold], windows)
    assert set(figures) == {f"rep_window_{l}" for l in windows} | {"uniq"}
    assert figures == pytest.approx({name: expected[name] for name in figures})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next_token([[1]], [[1]], windows=()), r"windows must be lengths of 1 or more, not \(\)"),
        (lambda: next_token([[1]], [[1]], windows=(0,)), r"windows must be lengths of 1 or more, not \(0,\)"),
        (lambda: next_token([[1, 2]], [[1]]), r"predictions \[1, 2\] and targets \[1, 1\] must have the same shape"),
        (lambda: next_token([[1, 2], [1]], [[1], [1, 2]]), "must have the same chunks"),
        (lambda: next_token([[1, 2], [1]], [[1, 2], [1, 2]]), "must have the same chunks"),
        (lambda: next_token([[1.5]], [[1]]), r"predictions must be whole numbers \(ids\), not float64"),
        (lambda: next_token([[-1]], [[1]]), "predictions must be ids from 0 to 16777215, not -1"),
        (lambda: next_token([[1]], [[-7]]), "targets must be ids from 0 to 16777215, not -7"),
        (lambda: next_token(np.zeros((1, 1, 1), int), [[1]]), r"not of shape \[1, 1, 1\]"),
        (lambda: next_token([], []), "at least one id other than ignore_index"),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
