"""ScaleGrad: train text generators that repeat themselves less.

`ScaleGradLoss` and `UnlikelihoodLoss` are the losses as modules, `functional` has them as functions, `sets` says which
tokens are discouraged and `gamma` how strongly.
"""

from importlib import import_module
from types import ModuleType

from scalegrad import functional, gamma, sets
from scalegrad._version import __version__
from scalegrad.nn import ScaleGradLoss, UnlikelihoodLoss

__all__ = ["ScaleGradLoss", "UnlikelihoodLoss", "__version__", "functional", "gamma", "sets"]

# Parts that need more than torch: there as attributes, loaded when they are first named.
_PARTS = ("data", "decoding", "integrations", "metrics", "models", "runs", "tasks")


def __getattr__(name: str) -> ModuleType:
    if name not in _PARTS:
        raise AttributeError(f"module 'scalegrad' has no attribute {name!r}")
    return import_module(f"scalegrad.{name}")
