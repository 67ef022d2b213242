"""What all experiments have in common: what they are told, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from scalegrad.lab.jobs import Job as Training
from scalegrad.results.comparison import Comparison, Plot
from scalegrad.runs import Job, Row, Run

BASE_SMALL = "base-small"  # a model of GPT-2 small's shape that is made here
SCALES = ("smoke", "gpu", "paper")
"""Seconds on two cores; one GPU for under half an hour; the paper's own models, data and hyper-parameters."""


@dataclass(frozen=True)
class Setup:
    """How to reproduce: at which scale, into which folder, and what only the user can give.

    Trained runs lie in `runs`, where experiments find each other's: the models of the main table are those of the
    decoding, length and sensitivity studies.
    """

    scale: str
    out: Path
    model: str | None = None  # in place of the scale's own
    seeds: int | None = None  # in place of the scale's own
    data: Mapping[str, str] = field(default_factory=dict)  # corpora that cannot be shipped: {"ptb": PATH, "imdb": PATH}
    devices: Sequence[str] | None = None  # as for `scalegrad.runs.run_jobs`
    gamma: float = 0.2  # of the illustrations; the paper's main models
    alpha: float = 1.0
    sentence: str | None = None  # of the novel set's illustration, in place of the paper's
    only_done: bool = False  # train and score nothing: show what is there, as of results brought from elsewhere

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {self.scale!r}")
        if self.seeds is not None and self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, not {self.seeds}")

    @property
    def runs(self) -> Path:
        """The folder of the trained runs, shared by all experiments of this scale and folder."""
        return self.out / "runs"

    @property
    def open_ended(self) -> Path:
        """The folder of the open-ended runs, called as the model that they start from.

        >>> Setup("gpu", Path("out"), "models/SmolLM2-135M-Instruct.Q4_1.gguf").open_ended.as_posix()
        'out/runs/SmolLM2-135M-Instruct.Q4_1'
        """
        own = {"smoke": "base", "gpu": BASE_SMALL, "paper": "gpt2-medium"}
        model = Path(self.model or own[self.scale])
        return self.runs / (model.stem if model.suffix == ".gguf" else model.name)


class Shown(NamedTuple):
    """A table: this machine's rows, people's and the paper's. `texts`: it is about texts, so all of them are shown."""

    title: str
    comparison: Comparison
    texts: bool = False


@dataclass(frozen=True)
class Outcome:
    """What an experiment gave: tables and plots, the rows they are made of, notes on them, and how they were made."""

    tables: Sequence[Shown] = ()
    plots: Sequence[Plot] = ()
    notes: Sequence[str] = ()  # what this is, what is missing and what does not compare, a sentence each
    made: Mapping[str, Any] = field(default_factory=dict)  # model, data, seeds, hardware, versions, seconds
    rows: Sequence[Row] = ()


@dataclass(frozen=True)
class Experiment:
    """A part of the paper that can be done again: its name on the command line and what of the paper it shows.

    `trainings` and `jobs` say what is to be run before `show` can show it. They look at the user's data, and raise
    `NotGiven` where it is missing. What they ask for may depend on jobs that are done: they are asked again then.
    """

    name: str
    title: str
    shows: tuple[str, ...]  # "table 1", "figure 2"
    show: Callable[[Setup], Outcome]
    trainings: Callable[[Setup], Sequence[Training]] | None = None  # open-ended runs, which experiments share
    jobs: Callable[[Setup], Sequence[Job]] | None = None
    scaled: bool = True  # whether what comes out depends on the scale; not so for what needs no trained model


class NotGiven(ValueError):
    """What the experiment needs cannot be shipped and was not given; the message says what it is and how to give it."""


def with_run_names(rows: Iterable[Row], runs: Iterable[Run]) -> list[Row]:
    """Rows as they are stored: their run is the name of its folder, wherever that lies."""
    names = {str(run.path): run.path.name for run in runs}
    return [replace(row, run=names.get(str(row.run), row.run)) for row in rows]
