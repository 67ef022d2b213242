"""The losses as functions: `scale_grad`, `unlikelihood`, and `linear_` forms that never build the logits whole."""

from scalegrad.functional.losses import (
    Parts,
    linear_scale_grad,
    linear_unlikelihood,
    scale_grad,
    unlikelihood,
)
from scalegrad.functional.options import OptionArguments, Options

__all__ = [
    "OptionArguments",
    "Options",
    "Parts",
    "linear_scale_grad",
    "linear_unlikelihood",
    "scale_grad",
    "unlikelihood",
]
