"""ScaleGrad: train text generators that repeat themselves less.

`ScaleGradLoss` and `UnlikelihoodLoss` are the losses as modules, `functional` has them as functions, `sets` says which
tokens are discouraged and `gamma` how strongly. Each loads torch when it is first used.
"""

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy
from scalegrad._version import __version__

if TYPE_CHECKING:
    from scalegrad import functional, gamma, sets
    from scalegrad.nn import ScaleGradLoss, UnlikelihoodLoss
else:
    _PARTS = ("data", "decoding", "functional", "gamma", "integrations", "metrics", "models", "objectives", "runs")
    __getattr__, __dir__ = lazy(__name__, (*_PARTS, "sets", "tasks"), nn="ScaleGradLoss UnlikelihoodLoss")

__all__ = ["ScaleGradLoss", "UnlikelihoodLoss", "__version__", "functional", "gamma", "sets"]
