"""The losses in other people's trainers: Hugging Face (`hf`), TRL (`trl`), and what they share.

>>> import scalegrad
>>> scalegrad.integrations.hf.attach.__name__
'attach'
"""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name not in ("hf", "trl"):  # loaded when they are first named: each needs a library of its own
        raise AttributeError(f"module 'scalegrad.integrations' has no attribute {name!r}")
    return import_module(f"scalegrad.integrations.{name}")
