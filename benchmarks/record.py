"""Results as a table on the screen and as data under `benchmarks/`: hardware, versions and date with every line."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.runner import Measurement, Row, Skipped
from scalegrad.runs import hardware, versions, write_text

Result = tuple[Mapping[str, object], Sequence[Row]]  # the columns that name a case, and its rows
Line = dict[str, object]

_FIGURES = ("ms", "spread", "extra_mib", "time_ratio", "memory_ratio", "floor_ratio")
_PACKAGES = ("triton", "liger-kernel", "cut-cross-entropy", "transformers")


def about(device: str) -> Line:
    """The columns every stored line begins with."""
    return {"date": datetime.date.today().isoformat(), "hardware": hardware(device), **versions(_PACKAGES)}


def default_path(*words: str) -> Path:
    """Where results of these words go unless asked otherwise.

    >>> default_path("throughput", "NVIDIA H200").as_posix()
    'benchmarks/throughput-nvidia-h200.csv'
    """
    return Path("benchmarks") / f"{'-'.join(re.sub(r'[^a-z0-9]+', '-', word.lower()).strip('-') for word in words)}.csv"


def say_progress(done: int, count: int, title: str) -> None:
    """What is being measured, to who watches; the table takes its place."""
    if sys.stderr.isatty():
        print(f"\r\033[K[{done + 1}/{count}] {title}\r", end="", file=sys.stderr, flush=True)


def print_table(title: str, rows: Sequence[Row]) -> None:
    """The first line is what the others are compared with."""
    width = max(44, len(title))
    print(f"{title:{width}}  {'ms':>8}  {'±':>4}  {'time':>6}  {'MiB':>6}  {'memory':>6}  {'floor':>6}  {'error':>5}")
    for row in rows:
        print(f"{row.name:{width}}  {_cells(row)}", flush=True)


def _cells(row: Row) -> str:
    if isinstance(row, Skipped):
        return f"– {row.reason}"
    cells = (
        f"{row.seconds * 1e3:8.3f}",
        f"{row.spread:4.0%}",
        _number(row.seconds_ratio, 6),
        _number(_mebibytes(row), 6, digits=0, unit=""),
        _number(row.bytes_ratio, 6),
        _number(row.floor_ratio, 6),
        _number(row.error, 5, unit=""),
    )
    return "  ".join(cells)


def _number(value: float | None, width: int, digits: int = 2, unit: str = "×") -> str:
    return f"{'–' if value is None else f'{value:.{digits}f}{unit}':>{width}}"


def lines(results: Iterable[Result]) -> list[Line]:
    """One for each implementation of each case, as stored."""
    return [{**columns, **_columns(row)} for columns, rows in results for row in rows]


def _columns(row: Row) -> Line:
    figures: dict[str, float | None] = dict.fromkeys(_FIGURES)
    if isinstance(row, Measurement):
        ratios = (row.seconds_ratio, row.bytes_ratio, row.floor_ratio)
        values = (row.seconds * 1e3, row.spread, _mebibytes(row), *ratios)
        figures = dict(zip(_FIGURES, values, strict=True))
    stored = {name: figure(value) for name, value in figures.items()}
    why = row.reason if isinstance(row, Skipped) else None
    return {"implementation": row.name, **stored, "error": figure(row.error), "skipped": why}


def _mebibytes(m: Measurement) -> float | None:
    return None if m.extra_bytes is None else m.extra_bytes / 2**20


def figure(value: float | None) -> float | str | None:
    """A number as stored: five digits, and what JSON has no number for as a word.

    >>> figure(1.2345678), figure(float("nan")), figure(None)
    (1.2346, 'nan', None)
    """
    if value is None:
        return None
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)


def finish(path: Path, stored: Sequence[Line], about: Mapping[str, object], as_json: bool) -> None:
    """Store the lines and say so, or print them as JSON."""
    save(path, stored, about)
    if as_json:
        print(json.dumps({"about": about, "rows": stored}, indent=2, ensure_ascii=False))
    else:
        print(f"stored in {path}")


def save(path: Path, lines: Sequence[Line], about: Mapping[str, object]) -> None:
    """A CSV, replaced whole."""
    text = io.StringIO()
    names = [*about, *(lines[0] if lines else ())]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**about, **line} for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text.getvalue())


def read(path: Path) -> list[dict[str, str]]:
    """The lines of a stored table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
