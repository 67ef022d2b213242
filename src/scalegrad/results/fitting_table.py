"""Tables that fit the terminal they are printed on."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement as Width
from rich.table import Table


def print_fitting(console: Console, wide: Table, upright: Table) -> None:
    """Print `wide` where it fits, else `upright`; if neither fits, `wide` over the edge, so that nothing is cut."""
    room = console.options.update(max_width=1_000)
    width = Width.get(console, room, wide).maximum
    if width > console.width >= Width.get(console, room, upright).maximum:
        console.print(upright)
        return
    edge = console.width
    console.width = max(edge, width)
    console.print(wide)
    console.width = edge
