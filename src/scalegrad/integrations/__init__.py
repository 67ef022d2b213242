"""The losses in other people's trainers: Hugging Face (`hf`), TRL (`trl`), and what they share.

>>> import scalegrad
>>> scalegrad.integrations.hf.attach.__name__
'attach'
"""

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, ("hf", "trl"))
