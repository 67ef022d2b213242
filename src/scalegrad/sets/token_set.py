"""A set of discouraged tokens, and how sets combine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from torch import Tensor

from scalegrad.sets.history import History
from scalegrad.sets.members import Members


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
        return None if members is None else members.without(self._exempt(history))

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
        told = {f.name: getattr(self, f.name) for f in fields(self)}
        settings = [f"{name}={value!r}" for name, value in told.items() if value not in ((), None)]
        return f"{type(self).__name__}({', '.join(settings)})"

    def __and__(self, other: TokenSet) -> TokenSet:
        return Both(self, other) if isinstance(other, TokenSet) else NotImplemented

    def __or__(self, other: TokenSet) -> TokenSet:
        return Either(self, other) if isinstance(other, TokenSet) else NotImplemented

    def __invert__(self) -> TokenSet:
        return Not(self)


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
