"""The human rows of the paper's tables, computed from the embedded corpus and set beside what the paper prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from paper.outcome import Experiment, Outcome, Setup, Shown
from paper.printed import printed
from scalegrad.data import completion_blocks, encode_corpus, gpt2_tokenizer, language_modelling_chunks, wikitext103
from scalegrad.metrics import clean_up_spaces, human_next_token, repetition
from scalegrad.results.comparison import Comparison, compare
from scalegrad.results.frame import frame
from scalegrad.runs import Row, rows_of

LANGUAGE_MODELLING = "language modelling, 1,024 targets a chunk"
BLOCKS_150 = "completion, 150-token blocks (what the paper's row is taken on)"
BLOCKS_100 = "completion, 100-token blocks (comparable with 100-token continuations)"
TABLES = {"test": 1, "valid": 11}
SPLITS = tuple(TABLES)
LENGTHS = {BLOCKS_150: 150, BLOCKS_100: 100}


@cache
def human_figures(split: str) -> dict[str, dict[str, float]]:
    """The columns of human text, by what they are taken on.

    Texts are decoded with the clean-up of tokenisation spaces, which decides uniq-w.

    >>> figures = human_figures("test")[LANGUAGE_MODELLING]
    >>> [round(figures[name], 5) for name in ("uniq", "rep_window_16", "rep_window_32", "rep_window_128")]
    [18271, 0.17747, 0.28479, 0.47993]
    """
    tokenizer = gpt2_tokenizer()
    ids = encode_corpus(wikitext103(split), tokenizer)
    figures = {LANGUAGE_MODELLING: human_next_token(language_modelling_chunks(ids)[:, 1:])}
    for taken_on, length in LENGTHS.items():
        texts = tokenizer.decode_batch(completion_blocks(ids, length).tolist())
        figures[taken_on] = repetition(map(clean_up_spaces, texts))
    return figures


def human_rows(setup: Setup) -> Outcome:
    """The human rows of tables 1 and 11, here and in the paper."""
    rows = {taken_on: [row for split in SPLITS for row in _rows(split, taken_on)] for taken_on in human_figures("test")}
    return Outcome(
        [Shown(taken_on, _table(own)) for taken_on, own in rows.items()],
        notes=[
            "Repetition grows with length: hold continuations of 100 tokens against the 100-token rows, not against "
            "the paper's, which are of 150 tokens."
        ],
        rows=[row for own in rows.values() for row in own],
    )


def _rows(split: str, taken_on: str) -> list[Row]:
    """This machine's and the paper's, of the columns that both have."""
    paper = [row for row in printed(TABLES[split]) if row.objective == "human"]
    figures = human_figures(split)[taken_on]
    own = {row.metric: figures[row.metric] for row in paper if row.metric in figures}
    size = {"window": 1024} if taken_on == LANGUAGE_MODELLING else {"new_tokens": LENGTHS[taken_on]}
    here = rows_of(own, task="open_ended", objective="human", corpus="wikitext-103", split=split, **size)
    return here + [row for row in paper if row.metric in own and taken_on != BLOCKS_100]


def _table(rows: Sequence[Row]) -> Comparison:
    systems = []
    for split in SPLITS:
        here = compare(frame(row for row in rows if row.split == split)).systems
        systems += [replace(system, name=split) for system in here]
    return Comparison(systems)


EXPERIMENTS = (Experiment("human-rows", "The human rows of tables 1 and 11", (), human_rows, scaled=False),)
