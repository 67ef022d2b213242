"""ScaleGrad: train text generators that do not repeat themselves.

`ScaleGradLoss` and `UnlikelihoodLoss` are the losses as modules, `functional` has them as functions, `sets` says which
tokens are discouraged and `gamma` how strongly.
"""

from scalegrad import functional, gamma, sets
from scalegrad._version import __version__
from scalegrad.nn import ScaleGradLoss, UnlikelihoodLoss

__all__ = ["ScaleGradLoss", "UnlikelihoodLoss", "__version__", "functional", "gamma", "sets"]
