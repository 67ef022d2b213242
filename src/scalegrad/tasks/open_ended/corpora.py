"""The texts models are scored on, by name: embedded WikiText-103, the Penn Treebank, IMDB, or any text file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from scalegrad.data import imdb, ptb, read_texts, wikitext103
from scalegrad.data.problems import Problems
from scalegrad.data.readers import STANDARD_INPUT, kind_of, name_of
from scalegrad.runs.progress import Progress

KNOWN = "wikitext-103, wikitext-103:valid, ptb:PATH, imdb:PATH, a file or folder of texts, or -"


@dataclass(frozen=True)
class Corpus:
    """A text to score on; `name` is what the paper's tables (`paper.printed`) call it, where they have it."""

    name: str
    text: str

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
    path = Path(name).expanduser()
    if name != STANDARD_INPUT and not path.exists():
        raise FileNotFoundError(f"corpus: there is no {name!r}; it may be {KNOWN}")
    kind = None if path.is_dir() or kind_of(name) else "txt"
    texts = read_texts(name, format=kind, problems=problems, progress=progress)
    return Corpus(name_of(path.name or path.resolve().name), "".join(f"{text}\n" for text in texts))
