"""How repetitive are these texts? The auto-completion columns of the paper."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scalegrad.metrics.word_tokens import batches, checked_texts, repeats, words

Floats = NDArray[np.float64]

LONGEST_NGRAM = 4
# Beyond so many distinct items only their hashes stay in memory.
KNOWN_ITEMS = 1 << 18

_LEFT_OUT = [float("nan")] * LONGEST_NGRAM

# In this order: a later pair works on what the earlier ones made.
_SPACES = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


def clean_up_spaces(text: str) -> str:
    """Take out the spaces that tokenised corpora put before punctuation and clitics.

    It is the clean-up that decoders of GPT-2's time applied by default, so the paper's texts went through it. It hardly
    moves Rep-n and decides uniq-w. It also contracts " do not": the original does.

    >>> clean_up_spaces("It 's late , they do not run .")
    "It's late, they don't run."
    """
    for spaced, tight in _SPACES:
        text = text.replace(spaced, tight)
    return text


class RepetitionCounter:
    """Rep-n and uniq-w of a stream of texts, in bounded memory.

    `add` takes some texts and returns their own figures; `result` gives those of everything added so far.

    >>> counter = RepetitionCounter()
    >>> counter.add(["a b a b"])["rep_2"].tolist()  # ab ba ab: two distinct of three
    [0.3333333333333333]
    >>> counter.add(["a b c d"])["rep_2"].tolist()
    [0.0]
    >>> counter.result()["rep_1"], counter.result()["uniq_w"]  # the mean of 1/2 and 0; a b c d
    (0.25, 4)
    """

    def __init__(self) -> None:
        self._items: set[str] = set()  # of text.split(' ')
        self._hashes: NDArray[np.int64] = np.empty(0, np.int64)  # of items that were let go, sorted
        self._sums = np.zeros(LONGEST_NGRAM)
        self._scored = 0

    def add(self, texts: Iterable[str]) -> dict[str, Floats]:
        """Count `texts` in, and return the Rep-n of each of them (see `repetition_per_text`)."""
        parts = [self._add_batch(batch) for batch in batches(checked_texts(texts))]
        values = np.concatenate([np.empty((LONGEST_NGRAM, 0)), *parts], axis=1)
        return {f"rep_{n + 1}": values[n] for n in range(LONGEST_NGRAM)}

    def _add_batch(self, batch: list[str]) -> Floats:
        self._items.update(" ".join(batch).split(" "))
        rows = []
        for tokens in map(words, batch):
            counts = repeats(tokens, LONGEST_NGRAM)
            enough = len(tokens) >= LONGEST_NGRAM
            rows.append([count / (len(tokens) - n) for n, count in enumerate(counts)] if enough else _LEFT_OUT)
        values = np.ascontiguousarray(np.transpose(rows))  # [n, texts]
        scored = ~np.isnan(values[0])
        self._sums += values[:, scored].sum(axis=1)
        self._scored += int(scored.sum())
        if len(self._items) > KNOWN_ITEMS:
            self._hashes = self._all_hashes()
            self._items.clear()
        return values

    def _all_hashes(self) -> NDArray[np.int64]:
        return np.union1d(self._hashes, np.fromiter(map(hash, self._items), np.int64, len(self._items)))

    def result(self) -> dict[str, float]:
        """`rep_1` … `rep_4`, `uniq_w` and `n_texts` of all texts added (see `repetition`)."""
        # Up to 262,144 distinct items the count is exact; beyond, items are told apart by a 64-bit hash (at ten
        # million items the chance that any two share one is 3 in a million).
        uniq_w = len(self._all_hashes()) if len(self._hashes) else len(self._items)
        means = [float(total) / self._scored if self._scored else float("nan") for total in self._sums]
        return {f"rep_{n + 1}": mean for n, mean in enumerate(means)} | {"uniq_w": uniq_w, "n_texts": self._scored}


def repetition(texts: Iterable[str]) -> dict[str, float]:
    r"""Rep-1 … Rep-4 and uniq-w of a set of texts, as in the auto-completion columns of the paper's tables.

    Rep-n is the mean over texts of 1 − distinct n-grams / n-grams, on the word tokens `\w+|[^\w\s]|\n`. Texts of three
    tokens or fewer have no 4-gram and are left out of Rep-n; `n_texts` counts the others (none left: NaN). `uniq_w`
    counts the distinct items of `text.split(' ')` over the whole set. Rep-n grows with the length of a text and uniq-w
    with their number: compare only sets of equal length and size.

    >>> repetition(["the cat sat on the mat", "no no no no", "ha ha"])  # tokens: 5 of 6 distinct; 1 of 4; left out
    {'rep_1': 0.4583333333333333, 'rep_2': 0.3333333333333333, 'rep_3': 0.25, 'rep_4': 0.0, 'uniq_w': 7, 'n_texts': 2}
    """
    counter = RepetitionCounter()
    for batch in batches(checked_texts(texts)):  # not `add`, which would keep the figures of every text
        counter._add_batch(batch)
    return counter.result()


def repetition_per_text(texts: Iterable[str]) -> dict[str, Floats]:
    """Rep-1 … Rep-4 of each text, [texts] each; NaN for a text of three tokens or fewer.

    >>> repetition_per_text(["no no no no", "ha ha"])["rep_1"]
    array([0.75,  nan])
    """
    return RepetitionCounter().add(texts)
