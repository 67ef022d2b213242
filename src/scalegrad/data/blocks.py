"""From a corpus to token ids, and from ids to the blocks the paper scores: its protocol, cut by cut."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scalegrad.data.readers import Latest

if TYPE_CHECKING:
    from scalegrad.runs.progress import Progress

Ids: TypeAlias = NDArray[np.int32]

_PIECE = 1_000_000  # characters encoded at a time: 2.5 million tokens at once would take 1.5 GB
_MARGIN = 1_000  # characters on either side of a cut that must encode the same with and without it
_TRIES = 20  # line ends tried before the rest is encoded whole

# The corpora of an experiment, encoded once for all of its runs: seconds each, and a process trains and scores many.
_ENCODED: Latest[Ids] = Latest(6)


def encode_corpus(text: str, tokenizer: Any, progress: Progress | None = None) -> Ids:
    """The ids of a corpus under the paper's protocol: `' '.join(lines_with_newlines).strip()`, encoded as one text.

    `tokenizer` is a `tokenizers.Tokenizer` or a transformers tokenizer; no special tokens are added. A long text is
    encoded in pieces, cut at line ends where cutting is seen to change no id; if no such place is found, whole.
    `progress` is told after each piece.

    >>> from scalegrad.data import gpt2_tokenizer
    >>> encode_corpus(" a b \\n c \\n", gpt2_tokenizer()).tolist()  # the text "a b \\n  c"
    [64, 275, 220, 198, 220, 269]
    """
    identity = tokenizer_checksum(tokenizer)
    key = identity and (hashlib.sha256(text.encode(errors="replace")).hexdigest(), identity)
    return _ENCODED.get(key, lambda: _encoded(text, tokenizer, progress)).copy()


def tokenizer_checksum(tokenizer: Any) -> str | None:
    """A checksum of all that a tokenizer is; None for one that cannot be written out."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    return hashlib.sha256(backend.to_str().encode()).hexdigest() if hasattr(backend, "to_str") else None


def language_modelling_chunks(ids: Ids, targets: int = 1024) -> Ids:
    """Cut `ids` [N] into chunks [M, targets + 1], what the language-modelling columns of the paper are taken on.

    `chunk[:-1]` is read and `chunk[1:]` predicted; the incomplete last chunk is dropped.

    >>> language_modelling_chunks(np.arange(8, dtype=np.int32), targets=2).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if targets < 1:
        raise ValueError(f"targets is {targets}; expected at least 1 token to predict in a chunk")
    return _rows(ids, targets + 1)


def completion_blocks(ids: Ids, length: int = 50) -> Ids:
    """Blocks [M, length] for auto-completion: 301-token chunks, the first 300 of each, cut every `length` tokens.

    As many blocks as fit are cut from each chunk; for a block of more than 300 tokens a chunk has one more than that.
    `length=50` gives the prefixes (6 a chunk). `length=150` gives the blocks the paper's human row was taken on, and
    `length=100` those comparable with continuations of 100 tokens: human repetition grows with length, never mix them.

    >>> blocks = completion_blocks(np.arange(602, dtype=np.int32), length=150)
    >>> blocks.shape, blocks[:, 0].tolist()
    ((4, 150), [0, 150, 301, 451])
    """
    if length < 1:
        raise ValueError(f"length is {length}; expected at least 1 token in a block")
    width = max(300, length)
    return _rows(ids, width + 1)[:, : width // length * length].reshape(-1, length)


def _encoded(text: str, tokenizer: Any, progress: Progress | None) -> Ids:
    # The join puts a space after every newline but the last, which strip() removes with what follows it.
    joined = text.replace("\n", "\n ").strip()
    parts, done = [], 0
    for piece in _pieces(joined, tokenizer):
        parts.append(np.asarray(_encode(piece, tokenizer), dtype=np.int32))
        done += len(piece)
        if progress:
            progress("tokenising (characters)", done, len(joined))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _rows(ids: Ids, width: int) -> Ids:
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"ids has shape {ids.shape}; expected one dimension, the ids of a whole corpus")
    rows = len(ids) // width
    return ids[: rows * width].reshape(rows, width)


def _pieces(text: str, tokenizer: Any) -> Iterator[str]:
    """Split `text` after line ends, about `_PIECE` characters apart, only where the split changes no id."""
    start = 0
    while len(text) - start > _PIECE:
        cut = start + _PIECE
        for _ in range(_TRIES):
            cut = text.find("\n ", cut) + 1
            if not cut or _may_cut(text, cut, tokenizer):
                break
        else:
            cut = 0  # a tokenizer that looks across line ends
        if not cut:
            break
        yield text[start:cut]
        start = cut
    if text:
        yield text[start:]


def _may_cut(text: str, cut: int, tokenizer: Any) -> bool:
    before, after = text[max(cut - _MARGIN, 0) : cut], text[cut : cut + _MARGIN]
    return _encode(before + after, tokenizer) == _encode(before, tokenizer) + _encode(after, tokenizer)


def _encode(text: str, tokenizer: Any) -> list[int]:
    encoded = tokenizer.encode(text, add_special_tokens=False)
    return list(encoded.ids if hasattr(encoded, "ids") else encoded)  # tokenizers gives an Encoding, transformers ids
