"""Models of our own, as Hugging Face models, and the small one that is shipped (`base`).

>>> import scalegrad
>>> scalegrad.models.base.path().name
'base'
"""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name != "base":  # loaded when it is first named; the others are imported by their own names
        raise AttributeError(f"module 'scalegrad.models' has no attribute {name!r}")
    return import_module("scalegrad.models.base")
