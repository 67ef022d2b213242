"""What can be chosen of open-ended training and evaluation; reading it loads nothing heavy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Annotated

from scalegrad import objectives
from scalegrad.decoding.strategies import Greedy, Strategy, parse
from scalegrad.models.pretrained import check_start
from scalegrad.objectives import Objective
from scalegrad.options import DATA, MACHINE, OPTIMISER, Batch, Model, option, parsed
from scalegrad.training.settings import Settings

_DATA, _OPTIMISER = option(group=DATA), option(group=OPTIMISER)


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Where a record keeps its text: in one field, or in two, a prompt and a completion. By default the usual names."""

    field: str | None = None
    """Field of the text in .jsonl, .csv and data sets (default: continuation, completion or text)."""
    prompt_field: str | None = None
    """Field of the prompt (default: prompt)."""
    completion_field: str | None = None
    """Field of the completion (default: completion)."""

    def __post_init__(self) -> None:
        if (self.prompt_field is None) != (self.completion_field is None):
            raise ValueError("prompt_field and completion_field belong together: name both, or neither")
        if self.field is not None and self.prompt_field is not None:
            raise ValueError(f"field is {self.field!r}, and prompt_field is named too: a record has one or the other")


_PAPER, _FIELDS, _SETTINGS = Objective("sg", 0.2), Fields(), Settings()


@dataclass(frozen=True)
class Training:
    """What to train on what, for whatever objective."""

    model: Model
    data: Annotated[tuple[str, ...], option(allow_leading_hyphen=True)]
    """Files (.txt, .jsonl, .csv), folders, -, hub data sets (NAME:SPLIT), or wikitext-2, which is shipped."""
    _: KW_ONLY
    init: str | None = None
    """Start from new weights, of a config.json, or tiny, small or medium; MODEL gives the tokenizer."""
    validation: Annotated[str | None, _DATA] = None
    """What to validate on, or none (default: a twentieth of DATA, held out)."""
    validation_sequences: Annotated[int | None, _DATA] = None
    """Validate on at most this many sequences (default: as many as take no longer than the training between)."""
    fields: Annotated[Fields, option(name="*", group=DATA)] = _FIELDS
    protocol: Annotated[str, _DATA] = "plain"
    """paper: encode texts as the paper does WikiText-103."""
    length: Annotated[int, _DATA] = 300
    """Tokens in a sequence."""
    prompt_seen: Annotated[bool, _DATA] = False
    """Count the prompt's tokens as seen, too."""
    lora: Annotated[int | None, _OPTIMISER] = None
    """Train only LoRA additions of this rank (needs peft)."""
    lora_alpha: Annotated[float | None, _OPTIMISER] = None
    """LoRA's α, their weight (default: twice the rank)."""
    lora_dropout: Annotated[float, _OPTIMISER] = 0.0
    """LoRA's dropout."""
    settings: Annotated[Settings, option(name="*", group=OPTIMISER)] = _SETTINGS
    trust_remote_code: Annotated[bool, option(group=MACHINE)] = False
    """Execute code that comes with the model."""

    def __post_init__(self) -> None:
        if self.lora is None and (self.lora_alpha is not None or self.lora_dropout):
            raise ValueError("lora_alpha and lora_dropout are for low-rank additions: give lora, their rank, too")
        if self.lora is not None and self.lora < 1:
            raise ValueError(f"lora must be a rank of at least 1, not {self.lora}")
        if self.length < 2:
            raise ValueError(f"length must be at least 2 tokens, not {self.length}")

    def run(self, objective: Objective, seed: int) -> TrainConfig:
        """One training of these."""
        shared = {field.name: getattr(self, field.name) for field in fields(Training)}
        return TrainConfig(**shared | {"settings": replace(self.settings, seed=seed)}, objective=objective)


@dataclass(frozen=True)
class TrainConfig(Training):
    """What to train on what, for which objective."""

    _: KW_ONLY
    objective: Annotated[Objective, parsed(objectives.parse, metavar="NAME")] = _PAPER
    """mle, ul or sg; with its strength: sg=0.2, ul=1.0."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What to measure of a model."""

    corpus: Annotated[tuple[str, ...], option(allow_leading_hyphen=True, metavar="NAME")] = ("wikitext-103",)
    """wikitext-103, wikitext-103:valid, ptb:PATH, imdb:PATH, a file or folder of texts, or -. May be repeated."""
    strategy: tuple[str, ...] = ("greedy",)
    """How to decode, such as greedy or greedy,gamma=0.2. May be repeated."""
    calibrate: float | None = None
    """γ of the calibrated perplexity (default: what the model was trained with)."""
    prefixes: int | None = None
    """Continue only this many prefixes, evenly spread; 0: none."""
    chunks: int | None = None
    """Predict only this many chunks, evenly spread; 0: none."""
    new_tokens: int = 100
    """Tokens to generate after each prefix."""
    start: str = "auto"
    """Put the model's start symbol before every text: yes, no, or auto, which does as the tokenizer does."""
    seed: int = 0
    """Seed of sampled texts, and of the draw of IMDB reviews."""
    batch: Batch = None
    """Chunks or prefixes at a time, or auto: what fits into memory."""

    def __post_init__(self) -> None:
        check_start(self.start)
        check_limits(self.chunks, self.prefixes, self.new_tokens)
        strategies = self.strategies  # every one is one there is
        if self.chunks == 0 and (self.prefixes == 0 or not strategies):
            raise ValueError("chunks and prefixes are both left out: nothing to evaluate")

    @property
    def strategies(self) -> list[Strategy]:
        """The ways to decode."""
        return [parse(text) for text in self.strategy]

    @property
    def penalties(self) -> list[Greedy]:
        """The γ of the strategies as penalties of next tokens, from weak to strong."""
        return [Greedy(gamma=gamma) for gamma in sorted({s.gamma for s in self.strategies if s.gamma < 1.0})]


def check_limits(chunks: int | None, prefixes: int | None, new_tokens: int) -> None:
    """Refuse limits that `evaluate` would refuse: known before any model is trained."""
    for what, number in (("chunks", chunks), ("prefixes", prefixes)):
        if number is not None and number < 0:
            raise ValueError(f"{what} is {number}; expected 1 or more, or 0 to leave its columns out")
    if new_tokens < 1:
        raise ValueError(f"new_tokens is {new_tokens}; expected 1 or more")
