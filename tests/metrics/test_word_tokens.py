from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import word_tokens as module
from scalegrad.metrics.word_tokens import WordCoder, batches, duplicates, repeated_ngrams, words

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
    for n, (position, code) in enumerate(repeated_ngrams(coded.ids, coded.text, longest), start=1):
        starts = [i for i in range(len(ids) - n + 1) if text[i] == text[i + n - 1]]
        times = Counter(tuple(ids[i : i + n]) for i in starts)
        repeated = [i for i in starts if times[tuple(ids[i : i + n])] > 1]
        assert sorted(position.tolist()) == repeated
        meaning = {c: tuple(ids[i : i + n]) for i, c in zip(position.tolist(), code.tolist(), strict=True)}
        assert len(set(meaning.values())) == len(meaning) == len({tuple(ids[i : i + n]) for i in repeated})
        assert all(meaning[c] == tuple(ids[i : i + n]) for i, c in zip(position.tolist(), code.tolist(), strict=True))


@given(st.lists(texts_of_few_letters, max_size=12), st.integers(1, 30))
def test_batches_keep_order_and_stay_small(texts: list[str], pieces: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_PIECES", pieces)
        cut = list(batches(iter(texts)))
    assert [text for batch in cut for text in batch] == texts
    for batch in cut:
        assert sum(len(text.split(" ")) for text in batch[:-1]) < pieces
