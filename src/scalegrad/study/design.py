"""A study as it is drawn: which pairs of texts, shown to whom, in which order and on which side."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from scalegrad.counts import counted

Choice = Literal["first", "second", "tie"]
QUESTION = "Which text continues the beginning better, by relevance, grammar, fluency and readability?"
TITLE = "Which continues it better?"

# What checks call their texts: the second is obviously worse.
CHECK = ("right", "wrong")


@dataclass(frozen=True)
class Item:
    """Two texts that continue one prefix: `texts[i]` is by `systems[i]`. A check's are right and wrong."""

    kind: Literal["pair", "check"]
    prefix_id: str
    prefix: str
    systems: tuple[str, str]
    texts: tuple[str, str]


@dataclass(frozen=True)
class Shown:
    """An item as one rater meets it: `swapped` puts `texts[1]` first; `repeat` marks its second showing."""

    item: int
    swapped: bool
    repeat: bool = False


@dataclass(frozen=True)
class Study:
    """A drawn study: `sheets[rater]` lists what that rater is shown, number 1 first."""

    id: str
    title: str
    question: str
    seed: int
    ties: bool
    closes: datetime | None
    pairs: tuple[tuple[str, str], ...]
    items: tuple[Item, ...]
    sheets: dict[str, tuple[Shown, ...]]

    def fingerprint(self) -> str:
        """A hash of what raters are shown and asked: of everything but the closing date, which may be moved."""
        design = json.dumps(replace(self, closes=None), default=vars, sort_keys=True)
        return hashlib.sha256(design.encode()).hexdigest()

    def notes(self) -> list[str]:
        """What an organiser and a reader of the results should know about this design."""
        prefixes = {item.prefix_id for item in self.items if item.kind == "pair"}
        checks = [item for item in self.items if item.kind == "check"]
        reused = sum(check.prefix_id in prefixes for check in checks)
        if not reused:
            return []
        return [
            f"{reused} of {counted(len(checks), 'attention check')} reuse a prefix of the study, for too few others "
            "are long enough: raters meet its words twice."
        ]

    def shown(self, rater: str, number: int) -> tuple[Shown, Item]:
        """What `rater` is asked at `number`, counted from 1."""
        shown = self.sheets[rater][number - 1]
        return shown, self.items[shown.item]

    def texts(self, rater: str, number: int) -> tuple[str, str]:
        """The two texts in the order in which `rater` sees them."""
        shown, item = self.shown(rater, number)
        return (item.texts[1], item.texts[0]) if shown.swapped else item.texts

    def chosen(self, rater: str, number: int, choice: Choice) -> str | None:
        """The system that a choice of `rater` at `number` is a vote for; None is a tie."""
        shown, item = self.shown(rater, number)
        if choice == "tie":
            return None
        return item.systems[(choice == "second") != shown.swapped]
