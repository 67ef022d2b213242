"""What verbs that run models share: progress on a terminal's standard error, and the options that all of them have."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from scalegrad.extras import need
from scalegrad.runs.progress import Progress

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, …")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Execute code that comes with the model.")]

Start = Annotated[
    str,
    typer.Option(
        help="Put the model's start symbol before every text: yes, no, or auto, which does as the tokenizer does."
    ),
]

SECONDS = 20.0  # at most so long without a line about work that goes on …
SHORT = 2.0  # … and no line about work that is over sooner


@contextmanager
def status(what: str) -> Iterator[None]:
    """Say what is waited for, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(what):
        yield


@contextmanager
def bars() -> Iterator[Progress]:
    """A function that draws a bar for each thing it is told of; without a terminal, a line every 20 seconds."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as drawn:
        tasks: dict[str, TaskID] = {}

        def progress(what: str, done: int, total: int) -> None:
            name = what.split(" · ")[0]  # what stands after the dot are figures that change
            if name not in tasks:
                tasks[name] = drawn.add_task(what, total=total or None)
            drawn.update(tasks[name], description=what, completed=done, total=total or None)

        yield progress


def _lines() -> Progress:
    """A line every 20 seconds, and at the end of what took more than 2."""
    began: dict[str, float] = {}  # when each piece of work began: when another was last heard of
    printed: dict[str, float] = {}  # when a line was last printed about it
    heard = time.monotonic()

    def progress(what: str, done: int, total: int) -> None:
        nonlocal heard
        name, now = what.split(" · ")[0], time.monotonic()
        began.setdefault(name, heard)
        heard = now
        ended = 0 < total <= done
        if now - printed.get(name, began[name]) >= SECONDS or (ended and now - began[name] >= SHORT):
            print(f"{what}: {done:,}{f' of {total:,}' if total else ''}", file=sys.stderr, flush=True)
            printed[name] = now
        if ended:  # the next of that name is the next model's
            del began[name]
            printed.pop(name, None)

    return progress


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
