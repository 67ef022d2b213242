"""Values that the benchmarks' options may have."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def at_least(least: Number) -> Callable[[str], Number]:
    """The `type` of an option whose value is a number, whole if `least` is, of at least this.

    >>> at_least(1)("20"), at_least(0.5)("2")
    (20, 2.0)
    >>> at_least(1)("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be a whole number of at least 1, not 0
    """
    kind = type(least)

    def read(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not math.isfinite(value) or value < least:
            whole = "whole " if kind is int else ""
            raise argparse.ArgumentTypeError(f"must be a {whole}number of at least {least:g}, not {text}")
        return value

    return read
