"""What a model is trained for, by name: `mle`, `ul=1.0`, `sg=0.2`, or `sg=linear:1.0:0.2:1000`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from scalegrad._version import __version__
from scalegrad.gamma import Constant, Cosine, Linear, RewardRepetition, Schedule, check_alpha, check_gamma

if TYPE_CHECKING:
    from scalegrad.nn import ScaleGradLoss, UnlikelihoodLoss

TokenLoss: TypeAlias = "ScaleGradLoss | UnlikelihoodLoss"

_RAMPS: dict[str, type[Linear] | type[Cosine]] = {"linear": Linear, "cosine": Cosine}
_FORMS = "mle, ul=α, sg=γ or sg=linear:START:STOP:STEPS (or cosine:…)"


@dataclass(frozen=True)
class Objective:
    """An objective and its strength: nothing for "mle", α for "ul", γ or a schedule of it for "sg"."""

    name: str
    strength: float | Schedule | None = None

    def __post_init__(self) -> None:
        if self.name == "mle":
            if self.strength is not None:
                raise ValueError(f"strength must be None for mle, not {self.strength!r}")
        elif self.name == "ul":
            check_alpha(self.strength)  # type: ignore[arg-type]  # says what it may be
        elif self.name == "sg":
            if not isinstance(self.strength, Schedule):
                check_gamma(self.strength)  # type: ignore[arg-type]
        else:
            raise ValueError(f"name must be 'mle', 'ul' or 'sg', not {self.name!r}")

    def __str__(self) -> str:
        if self.strength is None:
            return self.name
        return f"{self.name}={_write_schedule(self.strength)}"

    @property
    def label(self) -> str:
        """As a table names it.

        >>> Objective("sg", 0.2).label, Objective("mle").label
        ('SG γ=0.2', 'MLE')
        """
        return label(self.name, self.amount)

    @property
    def value(self) -> float | None:
        """The strength as one number: None for MLE and for a schedule."""
        return None if self.strength is None or isinstance(self.strength, Schedule) else float(self.strength)

    @property
    def amount(self) -> float | str | None:
        """The strength as a row of results has it: a number, a schedule in words, None for MLE.

        >>> Objective("sg", 0.2).amount, parse("sg=linear:1.0:0.2:1000").amount
        (0.2, 'linear:1.0:0.2:1000')
        """
        return self.value if self.value is not None or self.strength is None else _write_schedule(self.strength)

    def loss(self, **options: Any) -> TokenLoss:
        """The loss module, with options such as `label_smoothing` or `discourage`.

        MLE is ScaleGrad with γ = 1, so that all three count and divide alike.

        >>> Objective("mle").loss()
        ScaleGradLoss(gamma=1.0)
        """
        from scalegrad.nn import ScaleGradLoss, UnlikelihoodLoss

        if self.name == "ul":
            return UnlikelihoodLoss(self.strength, **options)  # type: ignore[arg-type]
        return ScaleGradLoss(1.0 if self.strength is None else self.strength, **options)


def label(name: str, amount: float | str | None = None) -> str:
    """What a table calls an objective: its name, and its strength as `Objective.amount` gives it.

    >>> label("sg", 0.2), label("ul", 1), label("mle")
    ('SG γ=0.2', 'UL α=1.0', 'MLE')
    """
    if amount is None:
        return name.upper()
    return f"{name.upper()} {'α' if name == 'ul' else 'γ'}={amount if isinstance(amount, str) else float(amount)}"


def parse(text: str) -> Objective:
    """The objective that a name stands for: the inverse of `str`. `ul` and `sg` alone have the paper's strength.

    >>> parse("sg=0.2")
    Objective(name='sg', strength=0.2)
    >>> str(parse("sg=linear:1.0:0.2:1000")), parse("ul").label
    ('sg=linear:1.0:0.2:1000', 'UL α=1.0')
    """
    name, equals, strength = text.strip().partition("=")
    if name not in ("mle", "ul", "sg") or (name == "mle" and equals) or bool(equals) != bool(strength):
        raise ValueError(f"objective must be {_FORMS}, not {text!r}")
    if name == "mle":
        return Objective("mle")
    if not equals:
        return Objective(name, 1.0 if name == "ul" else 0.2)
    if name == "sg" and ":" in strength:
        return Objective(name, _read_schedule(strength, text))
    return Objective(name, _read_number(strength, text))


def of_record(saved: Mapping[str, Any]) -> Objective | None:
    """The objective that a saved model's `record` names; None where γ was a function and has no name.

    >>> of_record({"objective": "sg", "gamma": 0.2}), of_record({"objective": "mle", "gamma": 1.0})
    (Objective(name='sg', strength=0.2), Objective(name='mle', strength=None))
    """
    name = str(saved.get("objective", ""))
    strength = saved.get("alpha" if name == "ul" else "gamma")
    try:
        return parse(name if name == "mle" or strength is None else f"{name}={strength}")
    except ValueError:
        return None


def record(loss: TokenLoss) -> dict[str, Any]:
    """What a saved model says of its training: objective, strength, set, and the options that were not the default.

    >>> from scalegrad import ScaleGradLoss
    >>> record(ScaleGradLoss(0.2))["gamma"], record(ScaleGradLoss(0.2))["discourage"]
    (0.2, 'Seen()')
    """
    from scalegrad.functional.inputs import Options
    from scalegrad.nn import UnlikelihoodLoss
    from scalegrad.sets import Seen

    if isinstance(loss, UnlikelihoodLoss):
        about: dict[str, Any] = {"objective": "ul", "alpha": loss.alpha}
    else:
        gamma = _describe_gamma(loss.gamma)
        about = {"objective": "mle" if gamma == 1.0 else "sg", "gamma": gamma}
    default = Options(discourage=Seen())
    names = [field.name for field in fields(Options) if field.name != "discourage"]
    options = {name: getattr(loss.options, name) for name in names}
    changed = {name: value for name, value in options.items() if value != getattr(default, name)}
    return {**about, "discourage": repr(loss.options.discourage), "options": changed, "scalegrad_version": __version__}


def _describe_gamma(gamma: Any) -> float | str:
    from torch import Tensor

    if isinstance(gamma, (int, float)):
        return float(gamma)
    if isinstance(gamma, (Linear, Cosine, Constant)):
        return _write_schedule(gamma)
    if isinstance(gamma, Tensor):
        return f"a tensor of shape {list(gamma.shape)}"
    if isinstance(gamma, (Schedule, RewardRepetition)):
        return repr(gamma)
    return str(getattr(gamma, "__name__", type(gamma).__name__))  # a callable


def _read_number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"objective must be {_FORMS}, and {text!r} in {whole!r} is no number") from None


def _read_schedule(text: str, whole: str) -> Schedule:
    kind, *numbers = text.split(":")
    if kind not in _RAMPS or len(numbers) not in (3, 4):
        raise ValueError(f"objective must be {_FORMS}, not {whole!r}")
    start, stop = (_read_number(number, whole) for number in numbers[:2])
    if not all(number.isdigit() for number in numbers[2:]):
        raise ValueError(f"objective must be {_FORMS}, with whole numbers of steps, not {whole!r}")
    return _RAMPS[kind](start, stop, *(int(number) for number in numbers[2:]))


def _write_schedule(strength: float | Schedule) -> str:
    if isinstance(strength, (Linear, Cosine)):
        numbers = [strength.start, strength.stop, strength.steps, *([strength.delay] if strength.delay else [])]
        return ":".join([type(strength).__name__.lower(), *map(str, numbers)])
    if isinstance(strength, Constant):
        return str(float(strength.value))
    return repr(strength) if isinstance(strength, Schedule) else str(float(strength))
