from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import word_tokens as module
from scalegrad.metrics.word_tokens import WordCoder, batches, duplicates, equals, repeated_ngrams, words

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


@given(st.lists(texts_of_few_letters, max_size=8), st.integers(1, 6))
def test_duplicates_against_sets(texts: list[str], longest: int) -> None:
    counts = duplicates(WordCoder().encode(texts), longest)
    for n in range(1, longest + 1):
        expected = []
        for text in texts:
            tokens = words(text)
            ngrams = [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]
            expected.append(len(ngrams) - len(set(ngrams)))
        assert counts[n - 1].tolist() == expected


@given(st.lists(texts_of_few_letters, max_size=8), st.integers(1, 6))
def test_repeated_ngrams_against_counts(texts: list[str], longest: int) -> None:
    coded = WordCoder().encode(texts)
    ids, text = coded.ids.tolist(), coded.text.tolist()
    for n, (place, equal) in enumerate(repeated_ngrams(coded.ids, coded.text, longest), start=1):
        ngram = {i: tuple(ids[i : i + n]) for i in range(len(ids) - n + 1) if text[i] == text[i + n - 1]}
        times = Counter(ngram.values())
        assert place.tolist() == [i for i in ngram if times[ngram[i]] > 1]
        assert all(ngram[i] == ngram[e] for i, e in zip(place.tolist(), equal.tolist(), strict=True))
        assert len(set(equal.tolist())) == sum(count > 1 for count in times.values())


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1)), max_size=60))
def test_equals_finds_one_for_all(numbers: list[int]) -> None:
    found = equals(np.array(numbers, np.int64)).tolist()
    assert all(numbers[index] == number for index, number in zip(found, numbers, strict=True))
    assert len(set(found)) == len(set(numbers))


def test_equals_of_numbers_that_meet_in_one_slot() -> None:
    # Multiples of 2^63 differ only in the bit that a product keeps on top, small tables make others meet as well.
    numbers = np.concatenate([np.arange(3000) << 40, np.arange(3000) << 40, np.arange(3000)])
    found = equals(numbers)
    assert (numbers[found] == numbers).all()
    assert len(np.unique(found)) == len(np.unique(numbers))


@given(st.lists(texts_of_few_letters, max_size=12), st.integers(1, 30))
def test_batches_keep_order_and_stay_small(texts: list[str], characters: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_CHARACTERS", characters)
        cut = list(batches(iter(texts)))
    assert [text for batch in cut for text in batch] == texts
    for batch in cut:
        assert sum(len(text) + 1 for text in batch[:-1]) < characters
    for batch in cut[:-1]:
        assert sum(len(text) + 1 for text in batch) >= characters
