"""Which tokens are discouraged: the paper's `Seen`, fixed `Ids`, `NgramRepeat`, and how sets combine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from scalegrad.sets.history import History
from scalegrad.sets.members import Members, ids_on


def id_tuple(ids: Iterable[int], argument: str) -> tuple[int, ...]:
    """Token ids as a tuple of whole numbers from 0, or a ValueError that names the argument."""
    try:
        ids = tuple(ids)
    except TypeError:
        raise ValueError(f"{argument} must be a list of token ids, not {ids!r}") from None
    for i in ids:
        if not isinstance(i, int) or isinstance(i, bool) or i < 0:
            raise ValueError(f"{argument} must hold token ids (whole numbers from 0), not {i!r}")
    return ids


@dataclass(frozen=True, repr=False)
class TokenSet:
    """C_t: the tokens that are discouraged at each step.

    A subclass says which they are in one of two ways:

    * `members(history)`, compactly, for every implementation. `Members.chosen(entries, choice)` builds it from a yes or
      no for each token read so far;
    * `mask(history)`, densely, when there is no compact form: then only the reference implementation can run it.

    Sets combine with `&`, `|` and `~`.

    Args:
        exempt: ids that are never discouraged (end of sequence, padding, chat tags), removed last.
    """

    exempt: Iterable[int] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exempt", id_tuple(self.exempt, "exempt"))

    def members(self, history: History) -> Members | None:
        """C_t for the R·T flat rows of `history`, before `exempt`; None where the set has no compact form."""
        return None

    def mask(self, history: History) -> Tensor:
        """[R·T, V] bool, before `exempt`."""
        members = self.members(history)
        if members is None:
            raise NotImplementedError(f"{type(self).__name__} must define members(history) or mask(history)")
        return members.mask(history.vocab)

    def compact(self, history: History) -> Members | None:
        """`members` less the exempt ids."""
        members = self.members(history)
        exempt = self._exempt(history)
        return members.without(exempt) if members is not None and exempt else members

    def dense(self, history: History) -> Tensor:
        """`mask` less the exempt ids."""
        mask = self.mask(history)
        exempt = self._exempt(history)
        if exempt:
            mask = mask.clone()
            mask[:, exempt] = False
        return mask

    def _exempt(self, history: History) -> tuple[int, ...]:
        """The exempt ids that the vocabulary has."""
        return tuple(i for i in self.exempt if i < history.vocab)

    def __repr__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        settings = [f"{name}={value!r}" for name, value in values.items() if value not in ((), None)]
        return f"{type(self).__name__}({', '.join(settings)})"

    def __and__(self, other: TokenSet) -> TokenSet:
        return Both(self, other) if isinstance(other, TokenSet) else NotImplemented

    def __or__(self, other: TokenSet) -> TokenSet:
        return Either(self, other) if isinstance(other, TokenSet) else NotImplemented

    def __invert__(self) -> TokenSet:
        return Not(self)


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
        entries = history.arrivals if history.source is None else history.entries
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


@dataclass(frozen=True, repr=False)
class Both(TokenSet):
    """`a & b`: discouraged by both."""

    a: TokenSet
    b: TokenSet

    def members(self, history: History) -> Members | None:
        a, b = self.a.compact(history), self.b.compact(history)
        return None if a is None or b is None else a & b

    def mask(self, history: History) -> Tensor:
        return self.a.dense(history) & self.b.dense(history)

    def __repr__(self) -> str:
        return f"({self.a!r} & {self.b!r})"


@dataclass(frozen=True, repr=False)
class Either(TokenSet):
    """`a | b`: discouraged by one or the other."""

    a: TokenSet
    b: TokenSet

    def members(self, history: History) -> Members | None:
        a, b = self.a.compact(history), self.b.compact(history)
        return None if a is None or b is None else a | b

    def mask(self, history: History) -> Tensor:
        return self.a.dense(history) | self.b.dense(history)

    def __repr__(self) -> str:
        return f"({self.a!r} | {self.b!r})"


@dataclass(frozen=True, repr=False)
class Not(TokenSet):
    """`~a`: every token that `a` does not discourage."""

    a: TokenSet

    def members(self, history: History) -> Members | None:
        a = self.a.compact(history)
        return None if a is None else a.inverse()

    def mask(self, history: History) -> Tensor:
        return ~self.a.dense(history)

    def __repr__(self) -> str:
        return f"~{self.a!r}"


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


def _earlier(ids: Tensor, back: int, text: Tensor) -> Tensor:
    """The id `back` places before each place of the same text, −1 where there is none."""
    if back == 0:
        return ids
    earlier = torch.full_like(ids, -1)
    earlier[:, back:] = torch.where(text[:, back:] == text[:, :-back], ids[:, :-back], -1)
    return earlier
