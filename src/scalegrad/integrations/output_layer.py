"""What a model does to its hidden states to get logits: the output layer, and what comes after it.

Nothing of a model's code is copied. Its configuration suggests what may come after the layer (a bias, a scale, a soft
cap); one real row of logits, taken from the model's own forward pass, decides which of the suggestions is true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from scalegrad.functional.inputs import Batch
from scalegrad.objectives.objective import TokenLoss

if TYPE_CHECKING:
    from scalegrad.integrations.attachment import Attachment

_SCALES = ("logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")  # names models give the factor
_CAPS = ("final_logit_softcapping", "logits_soft_cap")


class Finish(NamedTuple):
    """What comes after the output layer: `cap(scale · (W h + b + bias))`."""

    bias: str | None = None  # the attribute of the model that holds it, so that a moved buffer is found again
    logit_scale: float | None = None
    softcap: float | None = None

    def __call__(self, model: Any, logits: Tensor) -> Tensor:
        """The finished logits, in the dtype of those given, as the model would make them."""
        if self.bias is not None:
            logits = logits + self.extra_bias(model).to(logits.dtype)
        if self.logit_scale is not None:
            logits = logits * self.logit_scale
        if self.softcap is not None:
            logits = torch.tanh(logits / self.softcap) * self.softcap
        return logits

    def extra_bias(self, model: Any) -> Tensor:
        """[V] what is added to the layer's own bias."""
        value: Tensor = getattr(model, self.bias or "")
        return value.flatten()


class Request:
    """What a forward pass asks of the output layer: the loss of a batch, or (no batch) its first row of logits."""

    def __init__(
        self, attachment: Attachment, batch: Batch | None = None, loss: TokenLoss | None = None, whole: bool = False
    ) -> None:
        self.attachment = attachment
        self.batch = batch
        self.loss = loss
        self.whole = whole  # give all logits all the same
        self.value: Tensor | None = None
        self.rows: list[Tensor] = []


class OutputLayer:
    """Stands in the output layer's forward, inside whatever gathers its weight: answers a request, if there is one."""

    def __init__(self, attachment: Attachment, layer: nn.Linear) -> None:
        self.attachment = attachment
        self.layer = layer

    def __call__(self, input: Tensor) -> Tensor:
        request = self.attachment.request
        if request is None or (request.batch is None and input.dim() != 3):
            return nn.Linear.forward(self.layer, input)
        if request.batch is None or request.loss is None:
            logits = nn.Linear.forward(self.layer, input if request.whole else input[:1, :1])
            request.rows.append(logits[0, 0].clone())
            return logits
        value = self.attachment.linear(self.layer, input, request.batch, request.loss)
        request.value = value
        nothing = input.new_empty(1, 0, self.layer.weight.shape[0])
        return nothing + value.reshape(1)[:0].sum().to(nothing.dtype)


def is_plain(layer: Any) -> bool:
    """Is its output `hidden @ weight.T + bias` and nothing else? An adapter's `.weight`, say, leaves out its part."""
    inherited = isinstance(layer, nn.Linear) and type(layer).forward is nn.Linear.forward
    return inherited and "forward" not in layer.__dict__  # a device hook, say, would stand there


def find_finish(model: Any, row: Tensor, finished: Tensor) -> Finish | None:
    """The suggestion that turns `row`, [V] of the output layer, into `finished`, [V] of the model; None if none does.

    Of several that do, the nearest; of equally near ones, the first: at small logits a cap cannot be told from none.
    """
    best, least = None, 4 * torch.finfo(row.dtype).eps * float(finished.abs().max().clamp(min=1e-6))
    for finish in _suggestions(model):
        made = finish(model, row).to(finished.dtype)
        error = float((made - finished).abs().max())
        if error < least or (best is None and error <= least):
            best, least = finish, error
    return best


def _suggestions(model: Any) -> Iterator[Finish]:
    """What the model's configuration hints at, most first, then nothing at all."""
    config = model.config.get_text_config(decoder=True)
    cap = next((value for name in _CAPS if (value := getattr(config, name, None)) is not None), None)
    bias = "final_logits_bias" if isinstance(getattr(model, "final_logits_bias", None), Tensor) else None
    factors = (getattr(config, name, None) for name in _SCALES)
    told = [float(factor) for factor in factors if isinstance(factor, (int, float)) and factor]
    scales = [scale for factor in told for scale in (factor, 1 / factor)]  # some multiply, some divide
    for scale in (*scales, None):
        for softcap in dict.fromkeys((cap, None)):
            for name in dict.fromkeys((bias, None)):
                yield Finish(name, scale, softcap)
