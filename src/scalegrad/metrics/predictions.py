"""Next-token predictions: Rep/l, wrong-Rep/l, uniq and accuracy, from ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Ids = NDArray[np.integer[Any]]

# No vocabulary has more entries, so a table of all ids stays small.
_MOST_IDS = 1 << 24
# Positions sorted together, and positions in a block of such rows: a block's arrays stay in the cache.
_ROW = 1024
_BLOCK = 1 << 16


def next_token(
    predictions: Any, targets: Any, windows: Sequence[int] = (16, 32, 128), ignore_index: int = -100
) -> dict[str, float]:
    """Rep/l and wrong-Rep/l for each window l, uniq and accuracy of next-token predictions.

    Both are ids [chunks, T], one chunk [T], or a list of chunks of any lengths. `rep_window_l` is the share of
    positions whose prediction is among the previous l targets of the same chunk (fewer at its start);
    `wrong_rep_window_l` also needs a wrong prediction; `uniq` is the number of distinct predictions. Positions whose
    target is `ignore_index` are not counted and, as history, fill a place without being a token.

    >>> next_token(predictions=[[5, 5, 5, 6]], targets=[[5, 6, 5, 6]], windows=(2,))  # histories: –, 5, 5 6, 6 5
    {'rep_window_2': 0.75, 'wrong_rep_window_2': 0.25, 'uniq': 2, 'accuracy': 0.75}
    """
    if not windows or min(windows) < 1:
        raise ValueError(f"windows must be lengths of 1 or more, not {windows!r}")
    hits = np.zeros((2, len(windows)), np.int64)  # all, wrong
    total = correct = 0
    used = np.zeros(_MOST_IDS, bool)
    for guess, gold, past in _pieces(predictions, targets, max(windows), ignore_index):
        now = gold[:, past:]
        kept = now != ignore_index
        chosen = guess[kept]
        _check_ids("predictions", chosen)
        _check_ids("targets", gold[gold != ignore_index])
        used[chosen] = True
        total += len(chosen)
        correct += int(np.count_nonzero((guess == now) & kept))
        hits += _hits(np.where(kept, guess, 0), gold, past, windows, ignore_index)
    if total == 0:
        raise ValueError(f"targets must hold at least one id other than ignore_index ({ignore_index})")
    result: dict[str, float] = {}
    for window, (all_hits, wrong_hits) in zip(windows, hits.T.tolist(), strict=True):
        result |= {f"rep_window_{window}": all_hits / total, f"wrong_rep_window_{window}": wrong_hits / total}
    return result | {"uniq": int(used.sum()), "accuracy": correct / total}


def human_next_token(
    targets: Any, windows: Sequence[int] = (16, 32, 128), ignore_index: int = -100
) -> dict[str, float]:
    """The human row: `rep_window_l` and `uniq` with each target in place of the prediction.

    >>> human_next_token([[5, 6, 5, 5]], windows=(1, 2))  # the third repeats two back, the fourth one back
    {'rep_window_1': 0.25, 'rep_window_2': 0.5, 'uniq': 2}
    """
    figures = next_token(targets, targets, windows, ignore_index)
    return {name: value for name, value in figures.items() if name.startswith(("rep_", "uniq"))}


def _hits(guess: Ids, gold: Ids, past: int, windows: Sequence[int], ignore_index: int) -> NDArray[np.int64]:
    """Count the predictions that are among the last l targets, for each window l: [all or wrong, windows].

    `gold` [rows, past + P] starts `past` places before `guess` [rows, P]. Targets and predictions are sorted together,
    row by row, by (id, place): the target that a prediction repeats lies just before it, and one pass tells the latest,
    however wide the windows are.
    """
    width = gold.shape[1]
    reach = min(max(windows), width)
    ignored = gold == ignore_index
    none = int(max(guess.max(), gold.max())) + 1  # the id that stands for no token
    bits = (width + reach).bit_length()  # of a place; places start at `reach`, so that another id is always beyond it
    kind = np.uint32 if (none + 1).bit_length() + bits + 2 <= 32 else np.uint64
    keys = np.empty((len(gold), width + guess.shape[1]), kind)
    keys[:, :width] = np.where(ignored, none, gold)
    keys[:, width:] = guess
    keys += kind(1)
    keys <<= kind(bits)
    place = np.arange(reach, reach + width, dtype=kind)
    keys[:, :width] += place
    keys[:, width:] += place[past:]
    keys <<= kind(
        2
    )  # room for two flags: a target (which sorts after a prediction of the same place), a wrong prediction
    keys[:, :width] += kind(2)
    keys[:, width:] += guess != gold[:, past:]
    keys[:, width:][ignored[:, past:]] = 0
    keys.sort(axis=1)
    wrong = (keys & kind(1)).astype(bool)
    latest = np.where(keys & kind(2), keys, kind(0))
    np.maximum.accumulate(latest, axis=1, out=latest)
    distance = (keys >> kind(2)) - (latest >> kind(2)) - kind(1)  # of a target to itself: −1, the largest number
    near = [distance < min(window, reach) for window in windows]
    return np.array([[np.count_nonzero(n) for n in near], [np.count_nonzero(n & wrong) for n in near]])


def _pieces(predictions: Any, targets: Any, reach: int, ignore_index: int) -> Iterator[tuple[Ids, Ids, int]]:
    """Cut both into predictions [rows, P], targets [rows, past + P] that start `past` places earlier, and past."""
    for guess, gold in _tables(predictions, targets, ignore_index):
        for start in range(0, gold.shape[1], _ROW):
            first = max(start - reach, 0)
            yield guess[:, start : start + _ROW], gold[:, first : start + _ROW], start - first


def _tables(predictions: Any, targets: Any, ignore_index: int) -> Iterator[tuple[Ids, Ids]]:
    """Cut both into tables [rows, T] of whole chunks; shorter chunks are filled up with ignored targets."""
    guess, gold = _ids("predictions", predictions), _ids("targets", targets)
    if isinstance(guess, np.ndarray) and isinstance(gold, np.ndarray):
        if guess.shape != gold.shape:
            raise ValueError(f"predictions {[*guess.shape]} and targets {[*gold.shape]} must have the same shape")
        rows = max(1, _BLOCK // max(1, min(guess.shape[1], _ROW)))
        for start in range(0, len(guess), rows):
            yield guess[start : start + rows], gold[start : start + rows]
        return
    lengths = [len(chunk) for chunk in gold]
    if [len(chunk) for chunk in guess] != lengths:
        raise ValueError("predictions and targets must have the same chunks, each of the same length")
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__)
    while by_length:
        longest = max(1, lengths[by_length[-1]])
        rows = max(1, _BLOCK // longest)
        block, by_length = by_length[-rows:], by_length[:-rows]
        table = np.zeros((2, len(block), longest), np.int64)
        table[1] = ignore_index
        for row, chunk in enumerate(block):
            table[0, row, : lengths[chunk]] = guess[chunk]
            table[1, row, : lengths[chunk]] = gold[chunk]
        yield table[0], table[1]


def _ids(name: str, ids: Any) -> Ids | list[Ids]:
    """Ids as an array [chunks, T], or as a list of arrays where the chunks differ in length."""
    if not isinstance(ids, np.ndarray | torch.Tensor) and len(ids) and np.ndim(ids[0]):
        chunks = [_array(name, chunk) for chunk in ids]
        if len({chunk.shape for chunk in chunks}) > 1 and all(chunk.ndim == 1 for chunk in chunks):
            return chunks
        ids = np.stack(chunks)
    array = _array(name, ids)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must be ids [chunks, T], [T] or a list of chunks, not of shape {[*array.shape]}")
    return array[None] if array.ndim == 1 else array


def _array(name: str, ids: Any) -> Ids:
    array = ids.detach().cpu().numpy() if isinstance(ids, torch.Tensor) else np.asarray(ids)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers (ids), not {array.dtype}")
    return array


def _check_ids(name: str, ids: Ids) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= _MOST_IDS):
        wrong = ids[(ids < 0) | (ids >= _MOST_IDS)][0]
        raise ValueError(f"{name} must be ids from 0 to {_MOST_IDS - 1}, not {wrong}")
