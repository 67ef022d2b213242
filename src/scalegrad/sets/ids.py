"""A fixed set of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from scalegrad.sets.history import History
from scalegrad.sets.members import Members, ids_on
from scalegrad.sets.token_set import TokenSet, id_tuple


@dataclass(frozen=True, repr=False)
class Ids(TokenSet):
    """The same tokens at every step. With the end-of-sequence id: discourage stopping early.

    >>> Ids([2, 5])
    Ids(ids=(2, 5))
    """

    ids: Iterable[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ids", tuple(dict.fromkeys(id_tuple(self.ids, "ids"))))

    def members(self, history: History) -> Members:
        too_large = [i for i in self.ids if i >= history.vocab]
        if too_large:
            raise ValueError(f"ids must be below the vocabulary's size {history.vocab}, not {too_large[0]}")
        ids = ids_on(history.arrivals.device, tuple(self.ids))[None, :]
        line, begin, end = torch.zeros(3, history.arrivals.numel(), dtype=torch.int64, device=ids.device)
        return Members(ids, line, begin, end.add_(ids.shape[1]) if self.ids else end)
