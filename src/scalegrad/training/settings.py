"""How long, how fast and in which steps: what training needs to know beside model, objective and data."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from scalegrad.models.pretrained import DTYPES
from scalegrad.options import MACHINE, SAVING, option

SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup", "inverse_sqrt")

_SAVING, _MACHINE = option(group=SAVING), option(group=MACHINE)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of `fit`; what only says how to run it (`RUNNING`) may change when a run is resumed.

    >>> Settings(max_steps=100).steps_to_evaluate(100)
    10
    >>> Settings(max_steps=0)
    Traceback (most recent call last):
    ValueError: max_steps must be a whole number from 1, not 0
    """

    max_steps: int | None = None
    """Steps to train, in place of --epochs (default: one epoch)."""
    epochs: float | None = None
    """Passes over the data."""
    batch: int = 8
    """Sequences in a forward pass of each process."""
    accumulation: int = 1
    """Forward passes in a step."""
    learning_rate: Annotated[float, option(alias="--lr")] = 3e-5
    """AdamW's learning rate."""
    schedule: str = "linear"
    """The learning rate over time: linear, cosine, constant, constant_with_warmup or inverse_sqrt."""
    warmup_steps: float = 0
    """Warm-up in steps; below 1, as a share of the run."""
    weight_decay: float = 0.01
    """AdamW's weight decay."""
    max_grad_norm: float = 1.0
    """Clip gradients to this norm; 0: never."""
    seed: int = 0
    """Seed of the order of the data, dropout and new weights."""
    evaluate_every: Annotated[int | None, _SAVING] = None
    """Steps between validations (default: a tenth of the run)."""
    evaluation_batch: Annotated[int | None, _SAVING] = None
    """Sequences at a time in validation (default: --batch)."""
    save_every: Annotated[int | None, _SAVING] = None
    """Steps between checkpoints (default: at validations)."""
    log_every: Annotated[int, _SAVING] = 10
    """Steps between lines of metrics.jsonl."""
    patience: Annotated[int | None, _SAVING] = None
    """Stop after this many validations without a better one (default: never)."""
    tracker: Annotated[tuple[str, ...], _SAVING] = ("tensorboard",)
    """tensorboard, wandb, mlflow, …, or none. May be repeated."""
    dtype: Annotated[str, _MACHINE] = "auto"
    """auto (bfloat16 where the GPU has it), float32, bfloat16 or float16; weights are float32 in any case."""
    gradient_checkpointing: Annotated[bool, _MACHINE] = False
    """Use less memory and more time."""
    compile: Annotated[bool, _MACHINE] = False
    """Compile the model with torch.compile."""
    workers: Annotated[int, _MACHINE] = 0
    """Processes that load data."""
    fsdp: Annotated[str | None, _MACHINE] = None
    """JSON configuration of FSDP, as Trainer takes it."""
    deepspeed: Annotated[str | None, _MACHINE] = None
    """JSON configuration of DeepSpeed."""

    RUNNING = ("tracker", "workers", "log_every")  # what a resumed run may change: the weights do not depend on it

    def __post_init__(self) -> None:
        for name in ("max_steps", "evaluate_every", "evaluation_batch", "save_every", "patience"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        for name, least in (("batch", 1), ("accumulation", 1), ("log_every", 1), ("seed", 0), ("workers", 0)):
            _whole(name, getattr(self, name), least)
        for name in ("warmup_steps", "weight_decay", "max_grad_norm"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)!r}")
        if not 0 < self.learning_rate < float("inf"):
            raise ValueError(f"learning_rate must be a number above 0, not {self.learning_rate!r}")
        if self.epochs is not None and not 0 < self.epochs < float("inf"):
            raise ValueError(f"epochs must be a number above 0, not {self.epochs!r}")
        if self.epochs is not None and self.max_steps is not None:
            raise ValueError(f"give max_steps ({self.max_steps}) or epochs ({self.epochs}), not both")
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("dtype", self.dtype, DTYPES)
        for name in ("fsdp", "deepspeed"):
            path = getattr(self, name)
            if path is None:
                continue
            if not Path(path).is_file():
                raise FileNotFoundError(f"{name}: there is no configuration file {path}")
            _check_json(name, path)
        if self.deepspeed is not None and find_spec("deepspeed") is None:
            raise ValueError("deepspeed: the package is not installed; pip install deepspeed, or use fsdp")

    def steps(self, batches: int, processes: int = 1) -> int:
        """Steps of a run whose epoch has so many batches.

        >>> Settings(epochs=2, accumulation=4).steps(10)
        5
        """
        return self.max_steps or math.ceil((self.epochs or 1) * batches / (self.accumulation * processes))

    def steps_to_evaluate(self, max_steps: int) -> int:
        """Steps between two evaluations."""
        return self.evaluate_every or max(max_steps // 10, 1)

    def record(self) -> dict[str, Any]:
        """What belongs into a run's config: all but what may change when it is resumed."""
        return {name: value for name, value in asdict(self).items() if name not in self.RUNNING}

    def mixed_precision(self) -> str:
        """ "no", "bf16" or "fp16" for this machine."""
        if self.dtype != "auto":
            return {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[self.dtype]
        import torch

        return "bf16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False) else "no"


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, not {value!r}")


def _check_json(name: str, path: str) -> None:
    try:
        json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as mistake:
        raise ValueError(f"{name}: {path} is not JSON ({mistake})") from None


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
