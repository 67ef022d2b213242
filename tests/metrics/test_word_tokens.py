from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import word_tokens as module
from scalegrad.metrics.word_tokens import WordCoder, batches, duplicates, words

# Few letters, so that words repeat; every kind of blank, sign and word character that the pattern treats differently.
texts_of_few_letters = st.text(alphabet="abé_1.,'-\n\t\r \u00a0\u2028\u3000中", max_size=40)


@given(st.lists(texts_of_few_letters, max_size=8))
def test_coder_finds_the_words_that_the_pattern_finds(texts: list[str]) -> None:
    coded = WordCoder().encode(texts)
    expected = [re.findall(r"\w+|[^\w\s]|\n", text) for text in texts]
    assert coded.lengths.tolist() == [len(tokens) for tokens in expected]
    assert coded.text.tolist() == [i for i, tokens in enumerate(expected) for _ in tokens]
    numbers: dict[str, int] = {}
    flat = [token for tokens in expected for token in tokens]
    assert coded.ids.tolist() == [numbers.setdefault(token, len(numbers)) for token in flat]
    assert coded.vocabulary == len(numbers)


@given(st.lists(st.lists(texts_of_few_letters, max_size=4), max_size=4))
def test_coder_keeps_its_numbers_from_batch_to_batch(parts: list[list[str]]) -> None:
    coder = WordCoder()
    in_parts = [number for part in parts for number in coder.encode(part).ids.tolist()]
    assert in_parts == WordCoder().encode([text for part in parts for text in part]).ids.tolist()


@given(st.lists(texts_of_few_letters, max_size=8), st.integers(1, 6), st.booleans())
def test_duplicates_against_sets(texts: list[str], longest: int, across: bool) -> None:
    counts = duplicates(WordCoder().encode(texts), longest, across=across)
    assert counts.shape == (longest, len(texts))
    for n in range(1, longest + 1):
        used: set[tuple[str, ...]] = set()
        for column, text in enumerate(texts):
            if not across:
                used = set()
            tokens = words(text)
            repeats = 0
            for start in range(len(tokens) - n + 1):
                ngram = tuple(tokens[start : start + n])
                repeats += ngram in used
                used.add(ngram)
            assert counts[n - 1, column] == repeats


@given(st.lists(texts_of_few_letters, max_size=12), st.integers(1, 30))
def test_batches_keep_order_and_stay_small(texts: list[str], pieces: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_PIECES", pieces)
        cut = list(batches(iter(texts)))
    assert [text for batch in cut for text in batch] == texts
    for batch in cut:
        assert sum(len(text.split(" ")) for text in batch[:-1]) < pieces
