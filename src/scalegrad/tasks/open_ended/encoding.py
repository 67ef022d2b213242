"""Texts and pairs as ids: a few at a time, so that memory stays small and progress can be reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.examples import Ids

Item = TypeVar("Item")
Pair: TypeAlias = tuple[str, str]  # a prompt and its completion

_PIECE = 100_000  # characters of a long text given to the tokenizer at a time
_BATCH = 256  # texts given to it at a time …
_BATCH_CHARACTERS = 4_000_000  # … unless they are long: a report of progress comes after each batch


class _Piece(NamedTuple):
    """A part of a text: whether the text ends with it, and where in the text it ends."""

    text: str
    last: bool
    stop: int
    whole: int  # characters of the text


def encode_texts(texts: Iterable[str], tokenizer: Any, what: str, progress: Progress | None) -> Ids:
    """The ids of texts, one after another, each with the end symbol after it."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    parts = [np.empty(0, np.int32)]
    for few in _batches(_pieces(texts), lambda piece: len(piece.text)):
        rows = tokenizer([piece.text for piece in few], add_special_tokens=False)["input_ids"]
        for piece, ids in zip(few, rows, strict=True):
            parts.append(np.asarray([*ids, *end] if piece.last else ids, np.int32))
        if progress and few[-1].whole > _BATCH_CHARACTERS:  # of shorter texts the reading tells enough
            progress(what, few[-1].stop, few[-1].whole)
    return np.concatenate(parts)


def _pieces(texts: Iterable[str]) -> Iterator[_Piece]:
    """Texts, long ones cut at ends of lines."""
    for text in texts:
        start = 0
        while start < len(text):
            stop = text.find("\n", start + _PIECE) + 1 or len(text)
            yield _Piece(text[start:stop], stop == len(text), stop, len(text))
            start = stop


def encode_pairs(rows: Iterable[Pair], tokenizer: Any) -> Iterator[tuple[list[int], list[int]]]:
    """Ids of prompt and completion, the completion with the end symbol."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    for few in _batches(rows, lambda row: len(row[0]) + len(row[1])):
        prompts = tokenizer([prompt for prompt, _ in few], add_special_tokens=False)["input_ids"]
        completions = tokenizer([completion for _, completion in few], add_special_tokens=False)["input_ids"]
        for prompt, completion in zip(prompts, completions, strict=True):
            yield list(prompt), [*completion, *end]


def _batches(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """A few items at a time: `_BATCH` of them, or fewer that are long."""
    few: list[Item] = []
    size = 0
    for item in items:
        few.append(item)
        size += characters(item)
        if len(few) >= _BATCH or size >= _BATCH_CHARACTERS:
            yield few
            few, size = [], 0
    if few:
        yield few
