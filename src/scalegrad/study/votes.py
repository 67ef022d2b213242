"""Answers told as votes: who preferred which system, where, when."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from scalegrad.study.answers import Answer
from scalegrad.study.design import Choice, Study

TIE = "tie"


@dataclass(frozen=True)
class Vote:
    """One answer, unblinded. `winner` is a system, "tie", or for a check "right" or "wrong"."""

    rater: str
    number: int
    kind: Literal["pair", "check", "repeat"]
    prefix_id: str
    systems: tuple[str, str]
    first: str
    choice: Choice
    winner: str
    seconds: float | None
    answered_at: str
    comment: str


def votes_of(study: Study, answers: Iterable[Answer]) -> list[Vote]:
    """Unblind answers, by rater and number; `seconds` is the time since the rater's last answer, None for the first."""
    votes: list[Vote] = []
    for answer in sorted(answers, key=lambda answer: (answer.rater, answer.number)):
        shown, item = study.shown(answer.rater, answer.number)
        before = votes[-1] if votes and votes[-1].rater == answer.rater else None
        votes.append(
            Vote(
                rater=answer.rater,
                number=answer.number,
                kind="repeat" if shown.repeat else item.kind,
                prefix_id=item.prefix_id,
                systems=item.systems,
                first=item.systems[shown.swapped],
                choice=answer.choice,
                winner=study.chosen(answer.rater, answer.number, answer.choice) or TIE,
                seconds=_seconds(before.answered_at, answer.answered_at) if before else None,
                answered_at=answer.answered_at,
                comment=answer.comment,
            )
        )
    return votes


def votes_csv(votes: Iterable[Vote]) -> str:
    """The raw votes as CSV, one a row."""
    out = io.StringIO()
    rows = csv.writer(out)
    names = ["rater", "number", "kind", "prefix_id", "system_a", "system_b", "shown_first", "choice", "winner"]
    rows.writerow([*names, "seconds", "answered_at", "comment"])
    for vote in votes:
        seconds = "" if vote.seconds is None else f"{vote.seconds:.2f}"
        row = [vote.rater, vote.number, vote.kind, vote.prefix_id, *vote.systems, vote.first, vote.choice, vote.winner]
        rows.writerow([_inert(value) for value in [*row, seconds, vote.answered_at, vote.comment]])
    return out.getvalue()


def _inert(value: object) -> object:
    """A text that a spreadsheet would take for a formula, made a text.

    >>> _inert("=HYPERLINK(1)"), _inert("fine"), _inert(3)
    ("'=HYPERLINK(1)", 'fine', 3)
    """
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def _seconds(before: str, after: str) -> float:
    return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
