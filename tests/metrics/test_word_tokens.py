from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalegrad.metrics import word_tokens as module
from scalegrad.metrics.word_tokens import batches, ngrams, repeats, words

# Few letters, so that words repeat; every kind of blank, sign and word character that the pattern treats differently.
texts_of_few_letters = st.text(alphabet="abé_1.,'-\n\t\r \u00a0\u2028\u3000中", max_size=40)


@given(texts_of_few_letters, st.integers(1, 6))
def test_repeats_against_lists(text: str, longest: int) -> None:
    tokens = words(text)
    counts = repeats(tokens, longest)
    assert len(counts) == longest
    for n in range(1, longest + 1):
        expected = [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]
        assert list(ngrams(tokens, n)) == expected
        assert counts[n - 1] == sum(gram in expected[:place] for place, gram in enumerate(expected))


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
