"""`scalegrad measure`: how repetitive is this file of texts? Beside human text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from scalegrad.extras import need
from scalegrad.options import FLAT, AsJson, Html, SkipBad, Stream
from scalegrad.runs.terminal import bars


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
    skip_bad: SkipBad = False,
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
        .txt, .jsonl or .csv (also .gz, .xz), a folder, or - for standard input.
    """
    if not file:
        raise ValueError("FILE is missing; expected at least one, or - for standard input")
    for name in file:
        if name != "-" and not Path(name).exists():
            raise FileNotFoundError(f"file: there is no {name}")
    need("numpy", extra="measure")
    from rich.console import Console

    from scalegrad.data.records import Problems
    from scalegrad.results.measure import measure_files, report_as_dict
    from scalegrad.results.measure.page import check_path, write_page
    from scalegrad.results.measure.terminal import print_report

    if html:
        check_path(html)
    problems = Problems(skip_bad)
    with bars() as progress:
        report = measure_files(file, **asdict(measuring), problems=problems, progress=progress)
    problems.report()
    if html:
        write_page(report, html)
    if as_json:
        print(json.dumps(report_as_dict(report), ensure_ascii=False, indent=2))
    else:
        print_report(report, Console())
