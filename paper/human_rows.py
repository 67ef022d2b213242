"""The human rows of the paper's tables, computed from the embedded corpus and set beside what the paper prints."""

from __future__ import annotations

from paper.outcome import Experiment, Outcome, Setup
from paper.pages import Shown
from paper.printed import TABLES
from scalegrad.data import completion_blocks, encode_corpus, gpt2_tokenizer, language_modelling_chunks, wikitext103
from scalegrad.metrics import clean_up_spaces, human_next_token, repetition
from scalegrad.results.comparison import Comparison, System

LANGUAGE_MODELLING = "language modelling, 1,024 targets a chunk"
BLOCKS_150 = "completion, 150-token blocks (what the paper's row is taken on)"
BLOCKS_100 = "completion, 100-token blocks (comparable with 100-token continuations)"
SPLITS = ("test", "valid")


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
    for taken_on, length in ((BLOCKS_150, 150), (BLOCKS_100, 100)):
        texts = tokenizer.decode_batch(completion_blocks(ids, length).tolist())
        figures[taken_on] = repetition(map(clean_up_spaces, texts))
    return figures


def human_rows(setup: Setup) -> Outcome:
    """The human rows of tables 1 and 11, here and in the paper."""
    here = {split: human_figures(split) for split in SPLITS}
    return Outcome(
        [Shown(taken_on, _table(here, taken_on)) for taken_on in here["test"]],
        said=[
            "Repetition grows with length: hold continuations of 100 tokens against the 100-token rows, not against "
            "the paper's, which are of 150 tokens."
        ],
    )


def _table(here: dict[str, dict[str, dict[str, float]]], taken_on: str) -> Comparison:
    rows = []
    for split in SPLITS:
        figures = here[split][taken_on]
        printed = TABLES[f"wikitext-103 {split}"].rows["Human"]
        columns = [name for name in printed if name in figures]
        rows.append(System(split, {name: figures[name] for name in columns}))
        if taken_on != BLOCKS_100:
            rows.append(System(f"{split}, in the paper", {name: printed[name] for name in columns}, "paper"))
    return Comparison(rows)


EXPERIMENTS = (Experiment("human-rows", "The human rows of tables 1 and 11", (), human_rows, scaled=False),)
