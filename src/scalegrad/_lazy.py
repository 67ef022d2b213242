"""Packages whose heavy names load when they are first used, so that a command line answers at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def lazy(package: str, parts: Iterable[str] = (), **names: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that loads its `parts` (modules), and the names of others, on demand.

    `names` lists what each module brings: `nn="ScaleGradLoss UnlikelihoodLoss"`. Where a type checker reads, the
    package imports the same names under `if TYPE_CHECKING`.
    """
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names_of() -> list[str]:
        return sorted({*vars(sys.modules[package]), *parts, *modules})

    return load, names_of
