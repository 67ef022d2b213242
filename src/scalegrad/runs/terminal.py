"""What verbs that run models share: progress on a terminal's standard error, and the options that all of them have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from scalegrad.extras import need

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, …")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Execute code that comes with the model.")]

Start = Annotated[
    str,
    typer.Option(
        help="Put the model's start symbol before every text: yes, no, or auto, which does as the tokenizer does."
    ),
]

Told = Callable[[str, int, int], None]  # what, how much of it is done, how much there is


@contextmanager
def status(what: str) -> Iterator[None]:
    """Say what is waited for, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield


@contextmanager
def bars() -> Iterator[Told]:
    """A function that draws a bar for each thing it is told of; without a terminal, a line at each quarter of it."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        tasks: dict[str, TaskID] = {}

        def told(what: str, done: int, total: int) -> None:
            name = what.split(" · ")[0]  # what stands after the dot are figures that change
            if name not in tasks:
                tasks[name] = drawn.add_task(what, total=total)
            drawn.update(tasks[name], description=what, completed=done, total=total)

        yield told


def _lines() -> Told:
    quarters: dict[str, int] = {}  # how many of each were done when it was last spoken of

    def told(what: str, done: int, total: int) -> None:
        name = what.split(" · ")[0]
        quarter = 4 * done // max(total, 1)
        if quarter != quarters.get(name):  # fewer than before: the same of the next model
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)
        quarters[name] = quarter

    return told


def quiet_transformers() -> None:
    """Bars and remarks of the library would run into ours; errors still come through."""
    logging = need("transformers", extra="hf").utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def read_batch(text: str) -> int | None:
    """The value of --batch: None for auto."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--batch must be auto or a whole number of at least 1, not {text!r}")
    return int(text)
