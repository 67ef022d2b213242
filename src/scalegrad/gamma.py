"""How strongly ScaleGrad pushes: γ as a number, over training steps, or for each position."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

Dynamic: TypeAlias = "Callable[[Tensor, Tensor, Tensor], Tensor]"
"""γ from (position, entropy in nats, seen mass), each [R, T]: the paper's "dynamically adjust γ" idea."""

_SMALLEST = 1e-37


def check_gamma(gamma: float, name: str = "gamma") -> float:
    """γ as a float in (0, 1], or a ValueError."""
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float)) or not 0 < gamma <= 1:
        hint = " (RewardRepetition(γ) asks for γ > 1 by name)" if isinstance(gamma, (int, float)) and gamma > 1 else ""
        raise ValueError(f"{name} must be a number in (0, 1], not {gamma!r}{hint}")
    if gamma < _SMALLEST:
        raise ValueError(f"{name} must be at least {_SMALLEST:g}, below which float32 has only 0, not {gamma!r}")
    return float(gamma)


def check_alpha(alpha: float) -> float:
    """Unlikelihood's α as a finite float from 0, or a ValueError."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha < math.inf:
        raise ValueError(f"alpha must be a finite number from 0, not {alpha!r}")
    return float(alpha)


class Schedule(ABC):
    """γ as a pure function of the training step. The loss module holds the step; integrations set it."""

    @abstractmethod
    def at(self, step: int) -> float:
        """γ at `step` (from 0)."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The same γ at every step.

    >>> Constant(0.2).at(1000)
    0.2
    """

    value: float

    def __post_init__(self) -> None:
        check_gamma(self.value, "value")

    def at(self, step: int) -> float:
        return float(self.value)


@dataclass(frozen=True)
class _Ramp(Schedule):
    """From `start` to `stop` over `steps` steps, then `stop`; the first `delay` steps stay at `start`."""

    start: float
    stop: float
    steps: int
    delay: int = 0

    def __post_init__(self) -> None:
        check_gamma(self.start, "start")
        check_gamma(self.stop, "stop")
        if not isinstance(self.steps, int) or self.steps < 1:
            raise ValueError(f"steps must be a whole number from 1, not {self.steps!r}")
        if not isinstance(self.delay, int) or self.delay < 0:
            raise ValueError(f"delay must be a whole number from 0, not {self.delay!r}")

    def at(self, step: int) -> float:
        done = min(max(step - self.delay, 0) / self.steps, 1.0)
        gone = self._shape(done)
        return self.start * (1 - gone) + self.stop * gone  # exactly `stop` at the end

    @abstractmethod
    def _shape(self, done: float) -> float:
        """How much of the way is gone, [0, 1] → [0, 1]."""


class Linear(_Ramp):
    """A straight line from `start` to `stop` over `steps` steps.

    >>> Linear(1.0, 0.2, steps=100).at(50)
    0.6
    """

    def _shape(self, done: float) -> float:
        return done


class Cosine(_Ramp):
    """Half a cosine from `start` to `stop` over `steps` steps.

    >>> round(Cosine(1.0, 0.2, steps=100).at(25), 4)
    0.8828
    """

    def _shape(self, done: float) -> float:
        return (1 - math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class RewardRepetition:
    """γ > 1, by name: the loss then *rewards* what was already said. A control for experiments.

    >>> RewardRepetition(5.0).value
    5.0
    """

    value: float

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)) or not 1 < self.value < math.inf:
            raise ValueError(f"value must be a finite number above 1, not {self.value!r}")


Gamma: TypeAlias = "float | Tensor | Schedule | Dynamic | RewardRepetition"


def at_step(gamma: Gamma, step: int | None) -> float | Tensor | Dynamic | RewardRepetition:
    """`gamma` with any schedule resolved; a schedule that was never told its step raises."""
    if not isinstance(gamma, Schedule):
        return gamma
    if isinstance(gamma, Constant):
        return gamma.at(0)
    if step is None:
        raise ValueError(
            f"gamma is a schedule, {gamma!r}, and was never told its step: set `loss.step` before each step "
            "(the integrations do), or pass a number"
        )
    return check_gamma(gamma.at(step))


def check_gamma_tensor(gamma: Tensor, kept: Tensor, look: bool) -> Tensor:
    """A tensor of γ, detached: one for each target, 1 where the target is not `kept`. `look`: at its values too."""
    import torch

    shape = list(kept.shape)
    if list(gamma.shape) not in ([], shape):
        raise ValueError(f"gamma must be a number or have the targets' shape {shape}, not {list(gamma.shape)}")
    if not gamma.is_floating_point():
        raise ValueError(f"gamma must be of a floating-point dtype, not {gamma.dtype}")
    if gamma.dim() and gamma.device != kept.device:
        raise ValueError(f"gamma is on {gamma.device} and targets on {kept.device}: they must be on one device")
    gamma = torch.where(kept, gamma.detach().to(kept.device), 1.0)
    if look:
        bad = ((gamma > 0) & (gamma <= 1)).logical_not().nonzero()
        if len(bad):
            where = bad[0].tolist()
            raise ValueError(f"gamma must be in (0, 1] everywhere, not {gamma[tuple(where)].item():g} at {where}")
    return gamma
