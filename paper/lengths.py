"""Repetition of continuations by their length: written once at the longest, measured on each beginning of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scalegrad.data import completion_blocks, encode_corpus
from scalegrad.decoding import Greedy, generate, start_ids
from scalegrad.models.memory import batch_estimate, in_batches
from scalegrad.runs import Row, Run, rows_of
from scalegrad.runs.progress import Progress, bind
from scalegrad.tasks.open_ended.corpora import (
    PREFIX_TOKENS,
    Corpus,
    cut_corpus,
    decoded,
    find_corpus,
    spread,
    text_figures,
)


def limited(corpus: Corpus, prefixes: int | None) -> Corpus:
    """The corpus under a name of its own where only some prefixes are taken: rows of all of them stay apart.

    >>> limited(Corpus("wikitext-103", "test", ""), 962).title
    'wikitext-103, 962 prefixes test'
    """
    return corpus if prefixes is None else replace(corpus, name=f"{corpus.name}, {prefixes} prefixes")


@dataclass(frozen=True)
class Lengths:
    """Rep-n at each length of greedy continuation, the model's and people's, as rows of the run.

    A greedy text of 50 tokens is the beginning of the one of 300, so each prefix is continued once. Of human text there
    are as many blocks as there are prefixes at most, evenly spread.
    """

    corpus: str
    lengths: tuple[int, ...]
    prefixes: int | None = None

    def is_done(self, run: Run) -> bool:
        """Whether every length is there, of this text and as many prefixes."""
        return run.evaluation(self._settings(self._corpus())) is not None

    def measure(
        self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool = False, progress: Progress | None = None
    ) -> None:
        """All lengths at once: they are beginnings of the longest."""
        corpus, longest, start = self._corpus(), max(self.lengths), start_ids(tokenizer)
        context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        before = len(start) + PREFIX_TOKENS
        if context is not None and before + longest > context:
            raise ValueError(f"lengths: {longest} tokens are too many; expected at most {context - before}")
        cut = cut_corpus(corpus, tokenizer, chunks=0, prefixes=self.prefixes)
        texts = _continued(model, [[*start, *ids] for ids in cut.prefixes.tolist()], longest, progress)
        ids = encode_corpus(corpus.text, tokenizer)
        about = {**run.about(), "corpus": corpus.name, "split": corpus.split}
        people = {**about, "objective": "human", "strength": None, "seed": None, "step": None}
        rows: list[Row] = []
        for length in self.lengths:
            blocks = spread(completion_blocks(ids, length), len(texts)).tolist()
            model_figures = text_figures(decoded(tokenizer, [text[:length] for text in texts]))
            human_figures = text_figures(decoded(tokenizer, blocks))
            rows += rows_of(model_figures, **about, decoding=Greedy.name, new_tokens=length, n=len(texts))
            rows += rows_of(human_figures, **people, new_tokens=length, n=len(blocks))
        note = (
            f"{len(texts):,} of {cut.all_prefixes:,} prefixes, each continued once greedily by {longest} tokens; "
            "shorter texts are its beginnings."
        )
        run.add(rows, self._settings(corpus), notes=[note])

    def _corpus(self) -> Corpus:
        return limited(find_corpus(self.corpus), self.prefixes)

    def _settings(self, corpus: Corpus) -> dict[str, Any]:
        about = {"corpus": corpus.name, "split": corpus.split, "checksum": corpus.checksum, "decoding": Greedy.name}
        return {**about, "lengths": list(self.lengths), "prefixes": self.prefixes}


def _continued(
    model: Any, prefixes: Sequence[list[int]], new_tokens: int, progress: Progress | None
) -> list[list[int]]:
    """`new_tokens` greedy ids after each prefix, as many prefixes at a time as fit into memory."""

    def continued(places: slice) -> list[list[int]]:
        return generate(model, list(prefixes[places]), "greedy", new_tokens=new_tokens, min_new_tokens=new_tokens)

    size = batch_estimate(model, len(prefixes[0]) + new_tokens, beams=1)
    return [ids for part in in_batches(len(prefixes), size, continued, bind(progress, "lengths")) for ids in part]
