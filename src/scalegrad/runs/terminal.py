"""Progress on a terminal's standard error, for verbs that take a while."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scalegrad.extras import need
from scalegrad.runs.progress import Progress

SECONDS = 20.0  # at most so long without a line about work that goes on …
SHORT = 2.0  # … and no line about work that is over sooner


@contextmanager
def status(what: str) -> Iterator[None]:
    """Say what is waited for: while it lasts on a terminal, else one line."""
    if not sys.stderr.isatty():
        print(what, file=sys.stderr, flush=True)
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def bars() -> Iterator[Progress]:
    """A function that draws a bar for each thing it is called with; without a terminal, a line every 20 seconds."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn())
    with rich.Progress(*columns, rich.TimeRemainingColumn(), console=Console(stderr=True), transient=True) as drawing:
        tasks: dict[str, rich.TaskID] = {}

        def progress(what: str, done: int, total: int) -> None:
            name = what.split(" · ")[0]  # what stands after the dot are figures that change
            if name not in tasks:
                tasks[name] = drawing.add_task(what, total=total or None)
            drawing.update(tasks[name], description=what, completed=done, total=total or None)

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


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Our own remarks as one line each, and each only once."""
    seen: set[str] = set()
    usual: Callable[..., Any] = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
        if category is not UserWarning:
            usual(message, category, *where, **options)
        elif str(message) not in seen:
            seen.add(str(message))
            print(f"scalegrad: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
