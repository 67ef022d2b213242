"""What mixtures of experts add to their loss to keep the experts busy, weighted as the model itself weights it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

_WEIGHTS = {"aux_loss": ("router_aux_loss_coef", "aux_loss_coef"), "z_loss": ("router_z_loss_coef",)}


def with_router_losses(loss: Tensor, outputs: Any, model: Any) -> Tensor:
    """`loss` and every router loss in `outputs` (`aux_loss`, or `encoder_z_loss` and so on), times its coefficient.

    The coefficient is an attribute of the model or of its text model's configuration.
    """
    for name, value in router_losses(outputs).items():
        loss = loss + _weight(name, model) * value.to(loss.device)
    return loss


def router_losses(outputs: Any) -> dict[str, Tensor]:
    """Those that a model's output holds; a model that routes nothing gives a plain 0, or none."""
    if not hasattr(outputs, "items"):
        return {}
    return {name: x for name, x in outputs.items() if name.endswith(tuple(_WEIGHTS)) and isinstance(x, Tensor)}


def _weight(name: str, model: Any) -> float:
    attributes = next(attributes for kind, attributes in _WEIGHTS.items() if name.endswith(kind))
    for holder in (model, model.config.get_text_config(decoder=True)):
        for attribute in attributes:
            value = getattr(holder, attribute, None)
            if value is not None:
                return float(value)
    raise ValueError(
        f"{type(model).__name__} returns {name} and has no {' or '.join(attributes)} that says how much it counts"
    )
