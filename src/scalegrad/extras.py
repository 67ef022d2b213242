"""Optional packages load when used; a missing one says which extra brings it."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtra(ImportError):
    """An optional package is not installed; the message says how to get it."""


def need(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which `pip install` brings it.

    >>> need("json", extra="measure").dumps([1])
    '[1]'
    >>> need("no_such_package", extra="measure")
    Traceback (most recent call last):
    scalegrad.extras.MissingExtra: no_such_package is needed here: pip install "scalegrad[measure]"
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise  # the package is there and broken: hide nothing
        raise MissingExtra(f'{error.name} is needed here: pip install "scalegrad[{extra}]"') from None
