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
        if history.source is not None and (history.start is not None or self.window is not None):
            # Source and what still counts are not one range: what was forgotten lies between.
            return Members.chosen(history.entries, self._readable(history))
        # What step t has seen is one range of its row: the source, then its document up to t.
        steps, entries = history.arrivals.shape[1], history.entries
        place = torch.arange(history.arrivals.numel(), device=entries.device)  # few operations: on a GPU each is felt
        end = (place % max(1, steps)).add_(1 + entries.shape[1] - steps)
        return Members(entries.to(torch.int32), place // max(1, steps), self._first(history, end), end)

    def _first(self, history: History, end: Tensor) -> Tensor:
        """[N] the first step that still counts: the document's, or the window's (then nothing stands ahead)."""
        first = torch.zeros_like(end) if history.start is None else history.start.flatten()
        return first if self.window is None else torch.maximum(first, end - self.window)

    def _readable(self, history: History) -> Tensor:
        """[R, T, S + T] as `History.readable`, within the window."""
        readable = history.readable()
        if self.window is None:
            return readable
        steps = history.arrivals.shape[1]
        step = torch.arange(steps, device=readable.device)
        recent = step > step[:, None] - self.window  # [T, T]
        ahead = torch.ones(steps, readable.shape[2] - steps, dtype=torch.bool, device=readable.device)
        return readable & torch.cat([ahead, recent], 1)
