"""`scalegrad measure`: how repetitive is this file of texts? Beside human text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from scalegrad.extras import need
from scalegrad.options import FLAT, AsJson, Html, Stream

if TYPE_CHECKING:
    from scalegrad.results.measure.files import Progress


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """What to read, and how much of it: the arguments of `measure_files`."""

    human: str | None = None
    """File of human texts, in place of the embedded ones."""
    field: str | None = None
    """Field of a .jsonl, or column of a .csv, that holds the text."""
    format: str | None = None
    """txt, jsonl or csv, whatever the suffix says."""
    separator: str = "line"
    """What ends a text of a .txt: line, blank (line) or file."""
    limit: int | None = None
    """Read only this many texts of each file, the first ones."""
    words: int | None = None
    """Cut each text after this many words; leave out those with fewer."""
    worst: int = 3
    """How many of the worst texts of each file to quote."""


_MEASURING = Measuring()


def command(
    *file: Stream,
    measuring: Annotated[Measuring, FLAT] = _MEASURING,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """How repetitive are these texts? Figures beside human text of the same length.

    One table for one or several systems' files, with 95% intervals: repeated words and n-grams, texts that end stuck.
    Files with equally many texts are also compared text by text. The worst texts are quoted.

    Example: scalegrad measure mle.jsonl sg.jsonl --field continuation --html report.html

    Parameters
    ----------
    file
        .txt, .jsonl or .csv (also .gz, .xz), or - for standard input.
    """
    if not file:
        raise ValueError("FILE is missing; expected at least one, or - for standard input")
    for name in file:
        if name != "-" and not Path(name).exists():
            raise FileNotFoundError(f"file: there is no {name}")
    need("numpy", extra="measure")
    from rich.console import Console

    from scalegrad.results.measure import measure_files, report_as_dict
    from scalegrad.results.measure.page import check_path, write_page
    from scalegrad.results.measure.terminal import print_report

    if html:
        check_path(html)
    human = [measuring.human] if measuring.human else []
    with _progress([*file, *human], readings=1 if measuring.words is None else 2) as progress:
        report = measure_files(file, **asdict(measuring), progress=progress)
    if html:
        write_page(report, html)
    if as_json:
        print(json.dumps(report_as_dict(report), ensure_ascii=False, indent=2))
    else:
        print_report(report, Console())


@contextmanager
def _progress(sources: list[str], readings: int) -> Iterator[Progress | None]:
    """A bar a file, by the bytes of all its readings, on a terminal's standard error; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.DownloadColumn())
    with rich.Progress(*columns, rich.TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bars:
        sizes = {source: os.path.getsize(source) * readings for source in sources if os.path.isfile(source)}
        tasks = {source: bars.add_task(Path(source).name, total=sizes.get(source)) for source in sources}
        yield lambda source, read: bars.update(tasks[source], completed=read)
