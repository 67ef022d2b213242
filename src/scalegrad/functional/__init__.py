"""The losses as functions: `scale_grad`, `unlikelihood`, and `linear_` forms that never build the logits whole."""

from scalegrad.functional.losses import (
    Parts,
    linear_scale_grad,
    linear_unlikelihood,
    scale_grad,
    unlikelihood,
)

__all__ = ["Parts", "linear_scale_grad", "linear_unlikelihood", "scale_grad", "unlikelihood"]
