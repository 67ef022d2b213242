"""The paper's set: the tokens that were used already."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scalegrad.sets.history import History
from scalegrad.sets.members import Members
from scalegrad.sets.token_set import TokenSet


@dataclass(frozen=True, repr=False)
class Seen(TokenSet):
    """The tokens seen so far in the document: the paper's C_t = {y¹, …, yᵗ⁻¹}, the complement of its novel set.

    Args:
        window: count only the previous `window` positions (an ignored one occupies a place); a source always counts.
        exempt: ids that are never discouraged.

    >>> Seen(window=64, exempt=[50256])
    Seen(exempt=(50256,), window=64)
    """

    window: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None and (not isinstance(self.window, int) or self.window < 1):
            raise ValueError(f"window must be a whole number from 1, or None for no limit, not {self.window!r}")

    def members(self, history: History) -> Members:
        if self.window is not None and self.window < history.arrivals.shape[1]:
            return Members.of_rows(_last(history, self.window))
        if history.source is not None and history.start is not None:
            return Members.chosen(history.entries, history.readable())  # a source before each of several documents
        return _in_order_of_first_use(history)


def _in_order_of_first_use(history: History) -> Members:
    """One list a row, u₁, u₂, …: each document's distinct tokens by first use. Step t has seen a prefix of them."""
    entries = history.entries  # [R, M]
    rows, length = entries.shape
    ahead = length - history.arrivals.shape[1]  # entries of the source
    document = torch.zeros_like(entries) if history.start is None else history.start

    # An entry is new if no equal one of its document stands before it: a stable sort brings equals together in order.
    key = torch.where(entries < 0, -1, entries + document * history.vocab)
    ordered, place = key.sort(dim=1, stable=True)
    first = ordered >= 0
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    new = torch.zeros_like(first).scatter(1, place, first)

    count = new.cumsum(1)  # [R, M] how many are listed up to here
    slot = torch.where(new, count - 1, length)
    ids = torch.full((rows, length + 1), -1, dtype=torch.int32, device=entries.device)
    ids = ids.scatter(1, slot, entries.to(torch.int32))[:, :length]

    end = count[:, ahead:]
    before = torch.nn.functional.pad(count, (1, 0))[:, :-1]  # listed before each entry
    begin = torch.zeros_like(end) if history.start is None else before.gather(1, history.start)
    line = torch.arange(rows, device=entries.device)[:, None].expand_as(end)
    return Members(ids, line.flatten(), begin.flatten(), end.flatten())


def _last(history: History, window: int) -> Tensor:
    """[N, window (+ S)] what arrived at the last `window` steps of a document, −1 before its start; then the source."""
    arrivals = history.arrivals
    steps = torch.arange(arrivals.shape[1], device=arrivals.device)
    back = steps[:, None] - torch.arange(window, device=arrivals.device)  # [T, window]
    ids = arrivals[:, back.clamp(min=0)]  # [R, T, window]
    start = 0 if history.start is None else history.start[:, :, None]
    ids = torch.where(back >= start, ids, -1)
    if history.source is not None:
        source = history.source[:, None, :].expand(-1, arrivals.shape[1], -1)
        ids = torch.cat([ids, source], 2)
    return ids.flatten(0, 1)
