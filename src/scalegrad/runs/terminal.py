"""Progress on a terminal's standard error, for verbs that take a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scalegrad.extras import need

Progress = Callable[[str, int, int], None]  # what, how much of it is done, how much there is


@contextmanager
def status(what: str) -> Iterator[None]:
    """Say what is waited for, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def bars() -> Iterator[Progress]:
    """A function that draws a bar for each thing it is called with; without a terminal, a line at each quarter."""
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
                tasks[name] = drawing.add_task(what, total=total)
            drawing.update(tasks[name], description=what, completed=done, total=total)

        yield progress


def _lines() -> Progress:
    quarters: dict[str, int] = {}  # how many of each were done when its last line was printed

    def progress(what: str, done: int, total: int) -> None:
        name = what.split(" · ")[0]
        quarter = 4 * done // max(total, 1)
        if quarter != quarters.get(name):  # fewer than before: the same of the next model
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)
        quarters[name] = quarter

    return progress


def quiet_transformers() -> None:
    """Bars and remarks of the library would run into ours; errors still come through."""
    logging = need("transformers", extra="hf").utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
