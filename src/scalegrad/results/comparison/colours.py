"""Which colour a system has, in pictures and on the page: by its objective, told apart under every colour blindness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scalegrad.results.comparison.systems import System
from scalegrad.results.figure import PALETTE

_OPACITY = (1.0, 0.68, 0.45, 0.3)
_DASHES = ("-", "--", "-.", ":")


class Look(NamedTuple):
    """How a system is drawn."""

    name: str  # in PALETTE
    opacity: float
    dash: str
    hollow: bool  # a decoding, not a training

    @property
    def colour(self) -> str:
        return PALETTE[self.name]


def looks(systems: Sequence[System]) -> list[Look]:
    """A look for each system: the colour of its objective, fainter and dashed for the second of a kind.

    >>> [look.name for look in looks([System(objective="mle"), System(objective="human")])]
    ['mle', 'human']
    """
    used: dict[tuple[str, bool], int] = {}
    chosen = []
    for system in systems:
        name = "human" if system.kind == "human" else system.objective if system.objective in PALETTE else "other"
        hollow = system.kind in ("decoded", "paper")
        nth = used[name, hollow] = used.get((name, hollow), -1) + 1
        place = min(nth, len(_OPACITY) - 1)
        chosen.append(Look(name, _OPACITY[place], _DASHES[place], hollow))
    return chosen
