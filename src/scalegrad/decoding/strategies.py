"""The named ways of choosing the next token, and their short text form for command lines and configs."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_type_hints

from scalegrad.extras import need

if TYPE_CHECKING:
    from scalegrad.decoding.history import History
    from scalegrad.decoding.processors import Processor

Seen = Literal["all", "generated", "prompt"]
SEEN: tuple[Seen, ...] = ("all", "generated", "prompt")


@dataclass(frozen=True)
class Strategy:
    """What every strategy shares: how the model's scores are changed before a token is chosen.

    `gamma`: the novelty penalty, log γ added to what was seen (1 is off). `exempt`: ids it never touches.
    `block`: forbid repeated n-grams of this many ids (0 is off). `soft_block`: divide by four per earlier occurrence.
    `repetition_penalty`: divide the positive and multiply the negative scores of what was seen by it (1 is off).
    `seen`: what counts as seen, for all four; None means prompt and generated text for causal LMs, generated text
    only for encoder-decoders.
    """

    name: ClassVar[str]
    samples: ClassVar[bool] = False  # whether a random number decides

    _: KW_ONLY
    gamma: float = 1.0
    exempt: tuple[int, ...] = ()
    block: int = 0
    soft_block: int = 0
    repetition_penalty: float = 1.0
    seen: Seen | None = None

    def __post_init__(self) -> None:
        self._require("gamma", 0.0 < self.gamma <= 1.0, "in (0, 1]")
        self._require("block", _whole(self.block, 0), "a whole number, 0 (off) or more")
        self._require("soft_block", _whole(self.soft_block, 0), "a whole number, 0 (off) or more")
        self._require("repetition_penalty", 0.0 < self.repetition_penalty < math.inf, "positive")
        self._require("seen", self.seen in (None, *SEEN), f"one of {', '.join(SEEN)}")
        self._require("exempt", all(_whole(token, 0) for token in self.exempt), "token ids, 0 or more")

    def processors(self, history: History) -> list[Processor]:
        """The changes to the scores, in the order they apply."""
        from scalegrad.decoding.processors import NgramProcessor, NoveltyProcessor, RepetitionPenaltyProcessor

        found: list[Processor] = []
        if self.repetition_penalty != 1.0:  # first, for it looks at the sign of the model's own scores
            found.append(RepetitionPenaltyProcessor(self.repetition_penalty, history))
        if self.gamma < 1.0:
            found.append(NoveltyProcessor(self.gamma, history, self.exempt))
        if self.soft_block:
            found.append(NgramProcessor(self.soft_block, history))
        if self.block:
            found.append(NgramProcessor(self.block, history, penalty=math.inf))
        return found + self._truncation()

    def _truncation(self) -> list[Processor]:
        return []

    def _require(self, field: str, fine: bool, allowed: str) -> None:
        if not fine:
            raise ValueError(f"{self.name}: {field} must be {allowed}, not {getattr(self, field)!r}")

    def __str__(self) -> str:
        """The text form: `parse(str(strategy)) == strategy`, with fields at their default left out."""
        return ",".join([self._choice(), *self._words(penalties=False), *self._words(penalties=True)])

    @property
    def decoding(self) -> str:
        """The text form without penalties.

        >>> parse("beam=3,gamma=0.2,gnmt=1.0").decoding, parse("beam=3,gamma=0.2,gnmt=1.0").penalty
        ('beam=3,gnmt=1.0', 'gamma=0.2')
        """
        return ",".join([self._choice(), *self._words(penalties=False)])

    @property
    def penalty(self) -> str | None:
        """The penalties of the text form; None where there are none."""
        return ",".join(self._words(penalties=True)) or None

    def _choice(self) -> str:
        own = _own_field(type(self))
        return self.name if own is None else f"{self.name}={getattr(self, own)}"

    def _words(self, *, penalties: bool) -> list[str]:
        """The fields that are not at their default, as key=value: those of every strategy, or its own."""
        shared = {field.name for field in fields(Strategy)}
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.kw_only and (field.name in shared) == penalties and value != field.default:
                words.append(f"{field.name}={'+'.join(map(str, value)) if isinstance(value, tuple) else value}")
        return words


@dataclass(frozen=True)
class Greedy(Strategy):
    """The most likely token, every time. `gnmt`: β of length normalisation, which puts off the end (`EndProcessor`)."""

    name: ClassVar[str] = "greedy"
    _: KW_ONLY
    gnmt: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("gnmt", 0.0 <= self.gnmt < math.inf, "0 or more")

    def processors(self, history: History) -> list[Processor]:
        """Those of every strategy, then what decides on the end."""
        from scalegrad.decoding.processors import EndProcessor

        return super().processors(history) + ([EndProcessor(self.gnmt, history)] if self.gnmt else [])


@dataclass(frozen=True)
class Beam(Strategy):
    """Beam search: the hypothesis with the best log p / ((5 + length) / 6)^gnmt, the length counting the end symbol.

    `block_words`: drop a hypothesis in whose decoded text an n-gram of this many words repeats (0 is off). The words
    are `\\w+|[^\\w\\s]`, so the same words spelled by other ids are caught.
    """

    name: ClassVar[str] = "beam"
    size: int = 6
    _: KW_ONLY
    gnmt: float = 0.0
    block_words: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("size", _whole(self.size, 1), "a whole number, 1 or more")
        self._require("gnmt", 0.0 <= self.gnmt < math.inf, "0 or more")
        self._require("block_words", _whole(self.block_words, 0), "a whole number, 0 (off) or more")


@dataclass(frozen=True)
class _Sampling(Strategy):
    """Draw from softmax(scores / temperature), truncated."""

    samples: ClassVar[bool] = True
    _: KW_ONLY
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("temperature", 0.0 < self.temperature < math.inf, "positive")

    def _truncation(self) -> list[Processor]:
        library = need("transformers", extra="hf")
        heat = [library.TemperatureLogitsWarper(float(self.temperature))] if self.temperature != 1.0 else []
        return heat + self._warpers(library)

    def _warpers(self, library: Any) -> list[Processor]:
        raise NotImplementedError


@dataclass(frozen=True)
class TopK(_Sampling):
    """Draw among the k most likely tokens (and those that tie with the last of them)."""

    name: ClassVar[str] = "top_k"
    k: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("k", _whole(self.k, 1), "a whole number, 1 or more")

    def _warpers(self, library: Any) -> list[Processor]:
        return [library.TopKLogitsWarper(self.k)]


@dataclass(frozen=True)
class TopP(_Sampling):
    """Draw among the fewest most likely tokens whose probabilities reach p. `TopP(1.0)` draws from everything."""

    name: ClassVar[str] = "top_p"
    p: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("p", 0.0 < self.p <= 1.0, "in (0, 1]")

    def _warpers(self, library: Any) -> list[Processor]:
        return [library.TopPLogitsWarper(self.p)] if self.p < 1.0 else []


@dataclass(frozen=True)
class MinP(_Sampling):
    """Draw among the tokens at least p times as likely as the likeliest."""

    name: ClassVar[str] = "min_p"
    p: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("p", 0.0 <= self.p <= 1.0, "in [0, 1]")

    def _warpers(self, library: Any) -> list[Processor]:
        return [library.MinPLogitsWarper(self.p)]


@dataclass(frozen=True)
class Typical(_Sampling):
    """Draw among the tokens whose surprise is nearest to the entropy, taken until their probabilities reach `mass`."""

    name: ClassVar[str] = "typical"
    mass: float = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("mass", 0.0 < self.mass < 1.0, "in (0, 1)")

    def _warpers(self, library: Any) -> list[Processor]:
        return [library.TypicalLogitsWarper(self.mass)]


STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in (Greedy, Beam, TopK, TopP, MinP, Typical)}


def check_new_tokens(min_new_tokens: int, new_tokens: int) -> None:
    """A ValueError unless the lengths are such that a text can have them."""
    if new_tokens < 1:
        raise ValueError(f"new_tokens must be at least 1, not {new_tokens!r}")
    if not 0 <= min_new_tokens <= new_tokens:
        raise ValueError(f"min_new_tokens must lie in [0, {new_tokens}], not {min_new_tokens!r}")


def parse(text: str) -> Strategy:
    """A strategy from its text: the name, with its own number after "=", then further fields.

    >>> parse("greedy") == Greedy(), parse("top_k").k
    (True, 40)
    >>> str(parse("beam=5, gnmt=1.0, block_words=3"))
    'beam=5,gnmt=1.0,block_words=3'
    >>> parse("top_p=0.9,gamma=0.2,exempt=50256+198").exempt
    (50256, 198)
    """
    first, *rest = (word.strip() for word in text.split(","))
    name, has_value, value = (part.strip() for part in first.partition("="))
    if name not in STRATEGIES:
        raise ValueError(f"strategy {text!r}: the name must be one of {', '.join(STRATEGIES)}, not {name!r}")
    kind = STRATEGIES[name]
    own = _own_field(kind)
    if has_value and own is None:
        raise ValueError(f"strategy {text!r}: {name} takes no number of its own")
    given = {own: value} if own and has_value else {}
    known = [f.name for f in fields(kind) if f.name != own]
    for word in rest:
        key, has_value, value = (part.strip() for part in word.partition("="))
        if key not in known or not has_value or key in given:
            what = "twice" if key in given else "unknown" if key not in known else "without a value"
            raise ValueError(f"strategy {text!r}: {key!r} is {what}; {name} takes {', '.join(known)}, as key=value")
        given[key] = value
    hints = get_type_hints(kind)
    return kind(**{key: _read(text, key, value, hints[key]) for key, value in given.items()})


def _own_field(kind: type[Strategy]) -> str | None:
    """The strategy's own number: its one field that is not keyword-only, where it has one."""
    return next((field.name for field in fields(kind) if not field.kw_only), None)


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and value >= least


def _read(text: str, key: str, value: str, hint: Any) -> Any:
    try:
        if hint in (int, float):
            return hint(value)
        if hint == tuple[int, ...]:
            return tuple(int(part) for part in value.split("+"))
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(hint, "token ids joined by +")
        raise ValueError(f"strategy {text!r}: {key} must be {kind}, not {value!r}") from None
    return value
