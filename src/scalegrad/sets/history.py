"""What has been read when: the only thing a token set gets to look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class History:
    """The tokens that become readable at each step of `R` sequences of `T` steps.

    One rule covers the targets as history (a target counts from the step after it) and a `context` (an input counts
    from the step that reads it): `arrivals[r, t]` is the id that becomes readable *at* step t, −1 for none. A packed
    row holds several documents; `start[r, t]` is the first step of the one that step t belongs to.

    Args:
        arrivals: [R, T] integer ids, −1 where nothing arrives.
        vocab: how many tokens there are, V.
        start: [R, T] index of the first step of each step's document; None: every row is one document.
        source: [R, S] ids readable from the first step of every document of the row, −1 for none.
    """

    arrivals: Tensor  # [R, T]
    vocab: int
    start: Tensor | None = None  # [R, T]
    source: Tensor | None = None  # [R, S]

    @staticmethod
    def starts(segments: Tensor) -> Tensor:
        """First step of each step's document; a document starts where the segment id changes.

        >>> History.starts(torch.tensor([[7, 7, 9, 7]]))
        tensor([[0, 0, 2, 3]])
        """
        steps = torch.arange(segments.shape[1], device=segments.device)
        fresh = torch.zeros_like(segments, dtype=torch.bool)
        fresh[:, 1:] = segments[:, 1:] != segments[:, :-1]
        return torch.where(fresh, steps, 0).cummax(1).values

    @property
    def positions(self) -> Tensor:
        """[R, T] step number inside the document, from 0."""
        steps = torch.arange(self.arrivals.shape[1], device=self.arrivals.device)
        return steps.expand_as(self.arrivals) if self.start is None else steps - self.start

    @property
    def entries(self) -> Tensor:
        """[R, S + T] everything that is ever readable in a row: the source, then the arrivals in order."""
        return self.arrivals if self.source is None else torch.cat([self.source, self.arrivals], 1)

    def readable(self) -> Tensor:
        """[R, T, S + T]: may step t read entry s? The source always, an arrival of the same document up to step t."""
        rows, steps = self.arrivals.shape
        step = torch.arange(steps, device=self.arrivals.device)
        past = step <= step[:, None]  # [T, T]
        if self.start is not None:
            past = past & (step >= self.start[:, :, None])  # [R, T, T]
        past = past.expand(rows, steps, steps)
        if self.source is None:
            return past
        always = past.new_ones(rows, steps, self.source.shape[1])
        return torch.cat([always, past], 2)
