"""Where the logits come from: given whole, or made from hidden states and the weight of the output layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from scalegrad.functional.inputs import check_finite, check_floating
from scalegrad.ops import dispatch
from scalegrad.ops.dispatch import Call
from scalegrad.ops.rows import Losses, Objective
from scalegrad.sets import History, TokenSet


class Head(Protocol):
    """One prediction for each of `lead`, [..., T], over `vocab` tokens."""

    name: str

    @property
    def lead(self) -> torch.Size: ...
    @property
    def vocab(self) -> int: ...
    @property
    def values(self) -> Tensor:
        """The tensor that sets device and dtype."""

    def check_values(self, kept: Tensor) -> None: ...
    def run(self, call: Call, impl: str) -> Losses: ...
    def statistics(
        self, discourage: TokenSet, history: History, targets: Tensor, objective: Objective
    ) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True, eq=False)
class LogitsHead:
    """Logits [..., T, V]."""

    logits: Tensor
    inplace: bool
    name = "logits"

    def __post_init__(self) -> None:
        check_floating("logits", self.logits, at_least=2)
        if self.vocab == 0:
            raise ValueError(
                f"logits must have a vocabulary of at least one token, not the shape {list(self.logits.shape)}"
            )
        memory = self.logits if self.logits._base is None else self.logits._base
        if self.inplace and memory.is_leaf and memory.requires_grad:
            raise ValueError(
                "inplace=True would overwrite logits that are a leaf of the graph, or a view of one: "
                "pass the output of a model"
            )

    @property
    def lead(self) -> torch.Size:
        return self.logits.shape[:-1]

    @property
    def vocab(self) -> int:
        return self.logits.shape[-1]

    @property
    def values(self) -> Tensor:
        return self.logits

    def check_values(self, kept: Tensor) -> None:
        check_finite("logits", self.logits, kept)

    def run(self, call: Call, impl: str) -> Losses:
        flat = self.logits.reshape(-1, self.vocab)
        inplace = self.inplace and 0 not in flat.stride()  # expanded logits share memory and cannot hold a gradient
        return dispatch.from_logits(flat, call, impl, inplace)

    def statistics(
        self, discourage: TokenSet, history: History, targets: Tensor, objective: Objective
    ) -> tuple[Tensor, Tensor]:
        flat = self.logits.detach().reshape(-1, self.vocab)
        return dispatch.statistics((flat,), discourage, history, targets, objective)


@dataclass(frozen=True, eq=False)
class LinearHead:
    """Hidden states [..., T, D] and the output layer's weight [V, D] and bias [V]."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None
    accum_dtype: torch.dtype | None = None
    name = "hidden"

    def __post_init__(self) -> None:
        check_floating("hidden", self.hidden, at_least=2)
        check_floating("weight", self.weight, at_least=2)
        if self.accum_dtype not in (None, torch.float32):
            raise ValueError(f"accum_dtype must be None or torch.float32, not {self.accum_dtype!r}")
        width = self.hidden.shape[-1]
        if width == 0:
            raise ValueError(f"hidden must have at least one feature, not the shape {list(self.hidden.shape)}")
        if self.weight.dim() != 2 or self.weight.shape[1] != width or self.vocab == 0:
            raise ValueError(f"weight must have the shape [V, {width}] with V ≥ 1, not {list(self.weight.shape)}")
        if self.bias is not None:
            check_floating("bias", self.bias, at_least=1)
            if self.bias.shape != (self.vocab,):
                raise ValueError(f"bias must have the shape [{self.vocab}], not {list(self.bias.shape)}")
        for name, value in (("weight", self.weight), ("bias", self.bias)):
            if value is not None and value.device != self.hidden.device:
                raise ValueError(
                    f"{name} is on {value.device} and hidden on {self.hidden.device}: they must be on one device"
                )

    @staticmethod
    def of(hidden: Tensor, weight: Tensor, bias: Tensor | None, accum_dtype: torch.dtype | None = None) -> LinearHead:
        """Checked, and cast as a linear layer would cast under autocast."""
        head = LinearHead(hidden, weight, bias, accum_dtype)
        device = hidden.device.type
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
            bias = None if bias is None else _cast(bias, dtype)
            head = LinearHead(_cast(hidden, dtype), _cast(weight, dtype), bias, accum_dtype)
        for name, value in (("weight", head.weight), ("bias", head.bias)):
            if value is not None and value.dtype != head.hidden.dtype:
                raise ValueError(f"{name} is {value.dtype} and hidden {head.hidden.dtype}: they must be of one dtype")
        return head

    @property
    def lead(self) -> torch.Size:
        return self.hidden.shape[:-1]

    @property
    def vocab(self) -> int:
        return self.weight.shape[0]

    @property
    def values(self) -> Tensor:
        return self.hidden

    def check_values(self, kept: Tensor) -> None:
        check_finite("hidden", self.hidden, kept)
        for name, value in (("weight", self.weight), ("bias", self.bias)):
            if value is not None:
                check_finite(name, value, torch.ones((), dtype=torch.bool, device=value.device))

    def run(self, call: Call, impl: str) -> Losses:
        flat = self.hidden.reshape(-1, self.hidden.shape[-1])
        return dispatch.from_linear(flat, self.weight, self.bias, call, impl, wide=self.accum_dtype is not None)

    def statistics(
        self, discourage: TokenSet, history: History, targets: Tensor, objective: Objective
    ) -> tuple[Tensor, Tensor]:
        flat = self.hidden.detach().reshape(-1, self.hidden.shape[-1])
        return dispatch.statistics((flat, self.weight, self.bias), discourage, history, targets, objective)


def _cast(value: Tensor, dtype: torch.dtype) -> Tensor:
    """As autocast does: float64 stays."""
    return value if value.dtype == torch.float64 else value.to(dtype)
