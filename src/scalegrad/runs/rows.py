"""The one record of results: every figure that a run of a model gives is a row with the same typed fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from scalegrad.runs.atomic import line

FILE = "results.jsonl"
FIGURES = ("value", "low", "high", "sd", "n")  # what a row says; its other fields say of what


@dataclass(frozen=True)
class Row:
    """One figure. A field that does not apply is None.

    `scalegrad.results` loads rows of any number of runs into a data frame and makes tables, plots and pages of them.
    """

    metric: str
    """Name of the figure, such as "ppl" or "rep_1" (`results.columns` explains each)."""
    value: float | None
    """The figure; None where it could not be computed."""
    run: str | None = None
    """Name of the run's folder; "paper" for a figure that the paper prints."""
    task: str | None = None
    """"open_ended", "summarization" or "captioning"."""
    model: str | None = None
    """What the run started from: a hub name, a folder, a file."""
    objective: str | None = None
    """"mle", "ul", "sg"; "human" for text that people wrote."""
    strength: float | str | None = None
    """The objective's strength: a number, or a schedule in words."""
    decoding: str | None = None
    """How the texts were decoded, without a penalty: "greedy", "beam=3"."""
    penalty: str | None = None
    """The penalty while decoding or predicting: "gamma=0.2", "repetition_penalty=1.2"."""
    corpus: str | None = None
    """The text that was scored, or whose prefixes were continued."""
    split: str | None = None
    """The part of the corpus: "test", "valid"."""
    window: int | None = None
    """Targets in a chunk, for figures of next tokens."""
    new_tokens: int | None = None
    """Tokens that were generated, for figures of texts."""
    seed: int | None = None
    """Seed of the training; None for a mean over seeds."""
    step: int | None = None
    """Training step of the model."""
    low: float | None = None
    """Lower end of the 95% interval."""
    high: float | None = None
    """Upper end of the 95% interval."""
    sd: float | None = None
    """Standard deviation over seeds."""
    n: int | None = None
    """How many things the value is a mean of: texts, or seeds where `seed` is None."""


def rows_of(figures: Mapping[str, Any], **about: Any) -> list[Row]:
    """A row for each figure: a number, or a mapping with "value" and some of "low", "high", "sd", "n".

    >>> [(row.metric, row.value, row.seed) for row in rows_of({"ppl": 13.2, "rep_1": {"value": 0.6}}, seed=1)]
    [('ppl', 13.2, 1), ('rep_1', 0.6, 1)]
    """
    return [
        Row(metric=name, **{**about, **(figure if isinstance(figure, Mapping) else {"value": figure})})
        for name, figure in figures.items()
    ]


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """Append rows to a file, a line of JSON each; fields that are None are left out."""
    lines = [line({name: value for name, value in asdict(row).items() if value is not None}) for row in rows]
    with Path(path).open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a file; of several with equal fields, but for the figure itself, the last. A torn line is left out.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / FILE
    >>> write_rows(path, [Row("ppl", 14.0, seed=0), Row("ppl", 13.0, seed=0), Row("ppl", 12.5, seed=1)])
    >>> [(row.value, row.seed) for row in read_rows(path)]
    [(13.0, 0), (12.5, 1)]
    """
    path = Path(path)
    if not path.exists():
        return []
    *lines, _torn = path.read_text(encoding="utf-8", errors="replace").split("\n")
    known = {field.name for field in fields(Row)}
    rows: dict[tuple[Any, ...], Row] = {}
    for number, text in enumerate(lines, start=1):
        content = json.loads(text)
        if unknown := set(content) - known:
            raise ValueError(f"{path}, line {number}: a row has no field {', '.join(sorted(unknown))}")
        row = Row(**{"value": None, **content})
        rows[key(row)] = row
    return list(rows.values())


def key(row: Row) -> tuple[Any, ...]:
    """What a row is a figure of: all its fields but the figure."""
    return tuple(value for name, value in asdict(row).items() if name not in FIGURES)
