"""How long, how fast and in which steps: what training needs to know beside model, objective and data."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup", "inverse_sqrt")


@dataclass(frozen=True)
class Settings:
    """Settings of `fit`; what only says how to run it (`RUNNING`) may change when a run is resumed.

    Give `max_steps` or `epochs` (neither: one epoch). `batch_size` counts sequences for each process and forward pass;
    one step takes `accumulation` of them. `warmup_steps` below 1 is a share of all steps. `evaluate_every` and
    `save_every` count steps (None: a tenth of the run, and where it evaluates); `patience` stops after so many
    evaluations without a better one. `precision` "auto" is bf16 where the accelerator computes in it, else fp32;
    weights and optimizer are float32 in any case.

    >>> Settings(max_steps=100).steps_to_evaluate(100)
    10
    >>> Settings(max_steps=0)
    Traceback (most recent call last):
    ValueError: max_steps must be a whole number from 1, not 0
    """

    max_steps: int | None = None
    epochs: float | None = None
    batch_size: int = 8
    accumulation: int = 1
    learning_rate: float = 3e-5
    schedule: str = "linear"
    warmup_steps: float = 0
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    evaluate_every: int | None = None
    evaluation_batch_size: int | None = None
    save_every: int | None = None
    log_every: int = 10
    patience: int | None = None
    seed: int = 0
    precision: str = "auto"
    gradient_checkpointing: bool = False
    compile: bool = False
    fsdp: str | None = None
    deepspeed: str | None = None
    trackers: tuple[str, ...] = ("tensorboard",)
    workers: int = 0

    RUNNING = ("trackers", "workers", "log_every")  # what a resumed run may change: the weights do not depend on it

    def __post_init__(self) -> None:
        for name in ("max_steps", "evaluate_every", "evaluation_batch_size", "save_every", "patience"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        for name, least in (("batch_size", 1), ("accumulation", 1), ("log_every", 1), ("seed", 0), ("workers", 0)):
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
        _one_of("precision", self.precision, PRECISIONS)
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
        if self.precision != "auto":
            return {"fp32": "no"}.get(self.precision, self.precision)
        import torch

        return "bf16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False) else "no"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))


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
