"""Tokens that would repeat an n-gram."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scalegrad.sets.history import History
from scalegrad.sets.members import Members
from scalegrad.sets.token_set import TokenSet


@dataclass(frozen=True, repr=False)
class NgramRepeat(TokenSet):
    """The tokens that would complete an n-gram already used in the document (or standing in the source).

    `NgramRepeat(1)` is `Seen()`. An ignored position breaks the n-grams it stands in. Memory is of the order T² a row.

    >>> NgramRepeat(3)
    NgramRepeat(n=3)
    """

    n: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.n, int) or self.n < 1:
            raise ValueError(f"n must be a whole number from 1, not {self.n!r}")

    def members(self, history: History) -> Members:
        entries, arrivals = history.entries, history.arrivals
        document = torch.zeros_like(arrivals) if history.start is None else history.start
        text = document if history.source is None else torch.cat([torch.full_like(history.source, -1), document], 1)
        # Entry s completes an n-gram at step t if the n − 1 entries before s equal the last n − 1 arrivals of t.
        choice = history.readable()
        for back in range(1, self.n):
            before_entry = _earlier(entries, back, text)
            before_step = _earlier(arrivals, back - 1, document)
            choice = choice & (before_entry[:, None, :] == before_step[:, :, None]) & (before_step >= 0)[:, :, None]
        return Members.chosen(entries, choice)


def _earlier(ids: Tensor, back: int, text: Tensor) -> Tensor:
    """The id `back` places before each place of the same text, −1 where there is none."""
    if back == 0:
        return ids
    earlier = torch.full_like(ids, -1)
    earlier[:, back:] = torch.where(text[:, back:] == text[:, :-back], ids[:, :-back], -1)
    return earlier
