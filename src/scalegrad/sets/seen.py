"""The paper's set: the tokens that were used already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

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
        rows, steps = history.arrivals.shape
        entries = history.entries
        line, begin, end = _prefixes(entries.device, rows, steps, entries.shape[1] - steps)
        if history.start is not None:
            begin = history.start.flatten()
        if self.window is not None:  # then nothing stands ahead
            begin = torch.maximum(begin, end - self.window)
        return Members(entries.to(torch.int32), line, begin, end)

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


def _prefixes(device: torch.device, rows: int, steps: int, ahead: int) -> tuple[Tensor, Tensor, Tensor]:
    """Line, begin and end, [N] each, of everything up to each step, `ahead` entries standing before the first.

    They follow from the shapes, so they are kept from call to call: making them is five operations, and on a GPU each
    is felt. Kept for one stream, whose order says that they are there; and not while a graph is captured or compiled,
    nor under a mode that may put other tensors in their place.
    """
    if torch.compiler.is_compiling() or is_in_torch_dispatch_mode():
        return _make_prefixes(device, rows, steps, ahead)
    if device.type != "cuda":
        return _kept_prefixes(device, rows, steps, ahead, 0)
    with torch.cuda.device(device):
        if torch.cuda.is_current_stream_capturing():
            return _make_prefixes(device, rows, steps, ahead)
        return _kept_prefixes(device, rows, steps, ahead, torch.cuda.current_stream().cuda_stream)


@lru_cache(maxsize=4)
def _kept_prefixes(
    device: torch.device, rows: int, steps: int, ahead: int, stream: int
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.inference_mode(False):  # they may be needed for a backward pass later
        return _make_prefixes(device, rows, steps, ahead)


def _make_prefixes(device: torch.device, rows: int, steps: int, ahead: int) -> tuple[Tensor, Tensor, Tensor]:
    place = torch.arange(rows * steps, device=device)
    end = (place % max(1, steps)).add_(1 + ahead)
    return place // max(1, steps), torch.zeros_like(end), end
