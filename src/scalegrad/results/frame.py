"""Rows of any number of runs as one data frame, and means over seeds: what tables, plots and pages are made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalegrad.extras import need
from scalegrad.runs import Row, Run, read_rows
from scalegrad.runs.rows import KEY

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = tuple(field.name for field in fields(Row))
_NUMBERS = dict.fromkeys(("value", "low", "high", "sd"), "float64")
_PER_RUN = ("run", "step")  # what may differ, beside the seed, between the runs of one setting


def frame(rows: Iterable[Row]) -> DataFrame:
    """A data frame with a column for each field of `Row`; what is None there is None here, or NaN among figures.

    >>> frame([Row("ppl", 13.2, objective="mle", seed=0)])[["metric", "value", "seed", "penalty"]].to_dict("records")
    [{'metric': 'ppl', 'value': 13.2, 'seed': 0, 'penalty': None}]
    """
    pandas = need("pandas", extra="report")
    return pandas.DataFrame([asdict(row) for row in rows], columns=COLUMNS, dtype=object).astype(_NUMBERS)


def to_rows(data: DataFrame) -> list[Row]:
    """The rows of a data frame: the inverse of `frame`."""
    records: list[dict[str, Any]] = data.to_dict("records")
    return [Row(**_without_nan(record)) for record in records]


def _without_nan(record: dict[str, Any]) -> dict[str, Any]:
    return {name: None if name in _NUMBERS and value != value else value for name, value in record.items()}


def load(paths: Sequence[str | Path]) -> DataFrame:
    """The rows of runs in one data frame. A path is a run, a folder that holds runs, or a .jsonl file of rows.

    For a run, the column `run` is its folder's path: two runs of one name in different folders are two runs.
    """
    rows: list[Row] = []
    for path in map(Path, paths):
        if path.is_file():
            rows += read_rows(path)
        else:
            rows += [row for run in find_runs([path]) for row in run_rows(run)]
    return frame(rows)


def run_rows(run: Run) -> list[Row]:
    """The rows of a run, with its path as their `run`."""
    return [replace(row, run=str(run.path)) for row in run.rows()]


def find_runs(folders: Sequence[str | Path]) -> list[Run]:
    """The runs in these folders: a folder is a run itself, or holds runs at any depth.

    Raises ValueError for a folder without a run, and for a run that is named twice.
    """
    runs: list[Run] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        here = [folder] if _is_run(folder) else sorted({path.parent for path in folder.rglob("config.json")})
        inside = [Run.open(path) for path in here if _is_run(path)]
        if not inside:
            raise ValueError(f"{folder} holds no run (a folder with config.json and metrics.jsonl or done.json)")
        runs += inside
    places = [run.path.resolve() for run in runs]
    for place in places:
        if places.count(place) > 1:
            raise ValueError(f"{place} is named twice; expected different runs")
    return runs


def over_seeds(data: DataFrame) -> DataFrame:
    """Mean, deviation (n − 1) and number of seeds of rows that differ by run, seed and step alone; in their order.

    A row that is an aggregate already (its seed is None) stays as it is.

    >>> rows = [Row("ppl", 12.0, seed=0, n=4), Row("ppl", 14.0, seed=1, n=4)]
    >>> means = over_seeds(frame(rows))
    >>> [(row["value"], round(row["sd"], 4), row["n"], row["seed"]) for row in means.to_dict("records")]
    [(13.0, 1.4142, 2, None)]
    """
    keys = [name for name in KEY if name not in (*_PER_RUN, "seed")]
    means = []
    for _, group in data.groupby(keys, dropna=False, sort=False):
        first, *others = to_rows(group)
        if others:
            mean, sd = group["value"].mean(skipna=False), group["value"].std(skipna=False)
            run, step = (values[0] if len(set(values)) == 1 else None for values in (list(group[n]) for n in _PER_RUN))
            first = replace(first, value=float(mean), sd=float(sd), n=len(group), low=None, high=None, seed=None)
            first = replace(first, run=run, step=step)
        elif first.seed is not None:
            first = replace(first, seed=None, n=1)
        means.append(first)
    return frame(means)


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file() and any((path / name).exists() for name in ("metrics.jsonl", "done.json"))
