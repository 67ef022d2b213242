"""The base model that ships with the package: small, and it writes English. README.md beside this says how it was made.

>>> from scalegrad.models import base
>>> (base.path() / "model.safetensors").stat().st_size < 12_000_000
True
"""

from __future__ import annotations

from pathlib import Path

NAME = "base"
"""What commands that take a model call it."""


def path() -> Path:
    """The folder that `from_pretrained` loads: a `GPT2LMHeadModel` of 5.5 million weights and its tokenizer."""
    return Path(__file__).parent
