"""The settings all four losses share, written once."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict

from scalegrad.ops.dispatch import Impl
from scalegrad.sets import Seen, TokenSet

_PAPERS_SET = Seen()  # made once, and not a field default: a graph that is being compiled can make neither

Reduction = Literal["mean", "sum", "none"]


class OptionArguments(TypedDict, total=False):
    """The keyword arguments; `Options` has their defaults."""

    discourage: TokenSet
    ignore_index: int
    label_smoothing: float
    reduction: Reduction
    softcap: float | None
    logit_scale: float | None
    impl: Impl
    check: bool
    return_parts: bool


_NAMES = frozenset(OptionArguments.__annotations__)


@dataclass(frozen=True)
class Options:
    """Checked settings of a loss.

    Args:
        discourage: C_t, the tokens to discourage; the paper's by default.
        ignore_index: targets with this value are left out of loss and history.
        label_smoothing: ε of q = (1 − ε)·1[k] + ε/V, as in torch; unlikelihood smooths its likelihood term only.
        reduction: "mean" over the targets kept (or `num_items`), "sum", or "none": [..., T], 0 at ignored targets.
        softcap: c of c·tanh(o/c) on the logits, as Gemma models use.
        logit_scale: a factor on the logits (before the cap), as Cohere models use.
        impl: "auto", or one by name: "reference", "sparse" (logits), "chunked" (linear), "triton".
        check: also look at values that cost a look: NaN logits, and everything on a GPU.
        return_parts: return `(loss, Parts)`.
    """

    discourage: TokenSet
    ignore_index: int = -100
    label_smoothing: float = 0.0
    reduction: Reduction = "mean"
    softcap: float | None = None
    logit_scale: float | None = None
    impl: Impl = "auto"
    check: bool = False
    return_parts: bool = False

    @staticmethod
    def of(arguments: OptionArguments, owner: Callable[..., object]) -> Options:
        """From keyword arguments of `owner`; what is not given has its default."""
        for name in arguments:
            if name not in _NAMES:
                raise TypeError(_unknown(name, owner))
        return Options(**{"discourage": _PAPERS_SET, **arguments})  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if not isinstance(self.discourage, TokenSet):
            raise ValueError(f"discourage must be a token set such as sets.Seen(), not {self.discourage!r}")
        if not isinstance(self.ignore_index, int):
            raise ValueError(f"ignore_index must be a whole number, not {self.ignore_index!r}")
        if not _is_number(self.label_smoothing) or not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"label_smoothing must be a number in [0, 1], not {self.label_smoothing!r}")
        if self.reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {self.reduction!r}")
        for name in ("softcap", "logit_scale"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < float("inf")):
                raise ValueError(f"{name} must be a positive number or None, not {value!r}")


def _unknown(name: str, owner: Callable[..., object]) -> str:
    """The sentence for an option that `owner` does not have."""
    own = inspect.signature(owner).parameters.values()
    known = [parameter.name for parameter in own if parameter.kind is not parameter.VAR_KEYWORD] + sorted(_NAMES)
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"it may be one of {', '.join(known)}"
    return f"{owner.__name__} has no option {name!r}: {hint}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
