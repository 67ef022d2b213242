"""Models of our own, as Hugging Face models, and the small one that is shipped (`base`).

>>> import scalegrad
>>> scalegrad.models.base.path().name
'base'
"""

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, ("base",))
