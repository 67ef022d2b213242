"""ScaleGrad: train text generators that do not repeat themselves."""

from scalegrad._version import __version__

__all__ = ["__version__"]
