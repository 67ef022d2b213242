"""The texts that models are scored on: found by name, cut as the paper does, and their own figures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalegrad.counts import counted
from scalegrad.data import (
    completion_blocks,
    encode_corpus,
    imdb,
    language_modelling_chunks,
    ptb,
    read_texts,
    wikitext103,
)
from scalegrad.data.readers import STANDARD_INPUT, kind_of, name_of
from scalegrad.data.records import Problems
from scalegrad.metrics import clean_up_spaces, repetition
from scalegrad.runs.progress import Progress

CHUNK_TARGETS = 1024
PREFIX_TOKENS = 50
NEW_TOKENS = 100
UNKNOWN = "<unk>"

Ids = NDArray[np.int32]

KNOWN = "wikitext-103, wikitext-103:valid, ptb:PATH, imdb:PATH, a file or folder of texts, or -"


@dataclass(frozen=True)
class Corpus:
    """A text to score on: its name, which split of it, and the text."""

    name: str
    split: str | None
    text: str

    @property
    def title(self) -> str:
        """Name and split, for people."""
        return f"{self.name} {self.split}" if self.split else self.name

    @property
    def checksum(self) -> str:
        """The first 16 digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def find_corpus(
    name: str, seed: int = 0, *, problems: Problems | None = None, progress: Progress | None = None
) -> Corpus:
    """The corpus called `name`: wikitext-103 (its test text), wikitext-103:valid, ptb:PATH, imdb:PATH, or a place.

    Of IMDB 500 reviews are drawn by `seed`. A place is a file, a folder or "-" (standard input): .jsonl and .csv give
    their texts, a line each; other files are plain text. `problems` and `progress` are those of `data.read_texts`.

    >>> corpus = find_corpus("wikitext-103:valid")
    >>> corpus.name, corpus.split
    ('wikitext-103', 'valid')
    >>> find_corpus("wikitext-104")
    Traceback (most recent call last):
    FileNotFoundError: corpus: there is no 'wikitext-104'; it may be wikitext-103, wikitext-103:valid, ...
    """
    known, _, where = name.partition(":")
    if known == "wikitext-103":
        split = where or "test"
        return Corpus(known, split, wikitext103(split))
    if known in ("ptb", "imdb") and where:
        return Corpus(known, "test", ptb(where)) if known == "ptb" else Corpus(known, None, imdb(where, seed=seed))
    path = Path(name).expanduser()
    if name != STANDARD_INPUT and not path.exists():
        raise FileNotFoundError(f"corpus: there is no {name!r}; it may be {KNOWN}")
    kind = None if path.is_dir() or kind_of(name) else "txt"
    texts = read_texts(name, format=kind, problems=problems, progress=progress)
    return Corpus(name_of(path.name or path.resolve().name), None, "".join(f"{text}\n" for text in texts))


@dataclass(frozen=True)
class CutCorpus:
    """A corpus cut as the protocol says: chunks to predict, prefixes to continue, human text as long as the answers."""

    chunks: Ids  # [M, targets + 1]
    prefixes: Ids  # [P, 50]
    originals: list[list[int]]  # how the corpus goes on after each prefix, new_tokens of it
    blocks: Ids  # [P or fewer, new_tokens]
    all_chunks: int  # how many the corpus has
    all_prefixes: int
    unknown: bool  # whether <unk> is in the text

    def human_tokens(self) -> dict[str, float]:
        """Next-token figures of the corpus itself."""
        from scalegrad.metrics import human_next_token  # needs torch, and texts do not

        return human_next_token(self.chunks[:, 1:])

    def human_texts(self, tokenizer: Any) -> dict[str, float]:
        """Figures of the corpus' own texts, as long as a model's."""
        return text_figures(decoded(tokenizer, self.blocks.tolist()), unknown=self.unknown)


def cut_corpus(
    corpus: Corpus,
    tokenizer: Any,
    targets: int = CHUNK_TARGETS,
    new_tokens: int = NEW_TOKENS,
    chunks: int | None = None,
    prefixes: int | None = None,
    progress: Progress | None = None,
) -> CutCorpus:
    """Cut `corpus` for `evaluate`; `chunks` and `prefixes` as there."""
    ids = encode_corpus(corpus.text, tokenizer, progress)
    all_chunks, all_prefixes = language_modelling_chunks(ids, targets), completion_blocks(ids, PREFIX_TOKENS)
    chosen, starts = spread(all_chunks, chunks), spread(all_prefixes, prefixes)
    for wanted, there, what in (
        (chunks, chosen, f"fewer than one chunk of {targets + 1:,}"),
        (prefixes, starts, "and prefixes are cut from chunks of 301"),
    ):
        if wanted != 0 and not len(there):
            raise ValueError(f"corpus: {corpus.title} has {counted(len(ids), 'token')}, {what}")
    ends = spread(completion_blocks(np.arange(len(ids), dtype=np.int32), PREFIX_TOKENS), prefixes)[:, -1] + 1
    originals = [ids[end : end + new_tokens].tolist() for end in ends]
    blocks = spread(completion_blocks(ids, new_tokens), len(starts))
    sizes = len(all_chunks), len(all_prefixes)
    return CutCorpus(chosen, starts, originals, blocks, *sizes, unknown=UNKNOWN in corpus.text)


def spread(rows: Ids, count: int | None) -> Ids:
    """`count` of the rows, evenly spread; all of them where there are no more."""
    if count is None or count >= len(rows):
        return rows
    return rows[(np.arange(count) * len(rows)) // max(count, 1)]


def text_figures(texts: Iterable[str], unknown: bool = False) -> dict[str, float]:
    """Rep-1 … Rep-3, uniq-w and n_texts of texts after the paper's clean-up; with `unknown` also without `<unk>`.

    >>> text_figures(["a <unk> <unk> <unk> b c d ."], unknown=True)["rep_1_no_unk"]
    0.0
    """
    cleaned = [clean_up_spaces(text) for text in texts]
    figures = repetition(cleaned)
    if unknown:
        without = repetition(text.replace(UNKNOWN, "") for text in cleaned)
        figures |= {f"{key}_no_unk": without[key] for key in ("rep_1", "rep_2", "rep_3")}
    del figures["rep_4"]  # no column of the paper's
    return figures


def decoded(tokenizer: Any, blocks: list[list[int]]) -> Iterator[str]:
    """The text of each block of ids."""
    for block in blocks:
        yield str(tokenizer.decode(block, skip_special_tokens=True, clean_up_tokenization_spaces=False))
