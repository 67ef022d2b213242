"""The texts models are scored on, by name: embedded WikiText-103, the Penn Treebank, IMDB, or any text file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from scalegrad.data import imdb, ptb, read_texts, wikitext103

KNOWN = "wikitext-103, wikitext-103:valid, ptb:PATH, imdb:PATH or a text file"


@dataclass(frozen=True)
class Corpus:
    """A text to score on; `name` is what the paper's tables (`paper.printed`) call it, where they have it."""

    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The first 16 digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def find_corpus(name: str, seed: int = 0) -> Corpus:
    """The corpus called `name`: wikitext-103 (its test text), wikitext-103:valid, ptb:PATH, imdb:PATH, or a file.

    Of IMDB 500 reviews are drawn by `seed`. A .jsonl or .csv gives its texts, a line each; other files are plain text.

    >>> find_corpus("wikitext-103:valid").name
    'wikitext-103 valid'
    >>> find_corpus("wikitext-104")
    Traceback (most recent call last):
    FileNotFoundError: corpus: there is no 'wikitext-104'; it may be wikitext-103, wikitext-103:valid, ...
    """
    known, _, where = name.partition(":")
    if known == "wikitext-103":
        split = where or "test"
        return Corpus(f"wikitext-103 {split}", wikitext103(split))
    if known in ("ptb", "imdb") and where:
        return Corpus("ptb test", ptb(where)) if known == "ptb" else Corpus("imdb", imdb(where, seed=seed))
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"corpus: there is no {name!r}; it may be {KNOWN}")
    plain = path.with_suffix("").suffix if path.suffix in (".gz", ".xz") else path.suffix
    texts = read_texts(path, format=None if plain in (".jsonl", ".ndjson", ".csv") else "txt")
    return Corpus(path.name, "".join(f"{text}\n" for text in texts))
