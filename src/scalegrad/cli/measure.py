"""`scalegrad measure`: how repetitive is this file of texts? Beside human text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scalegrad.extras import need
from scalegrad.runs.terminal import bars

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE", help=".txt, .jsonl or .csv (also .gz, .xz), a folder, or - for standard input."),
]
Field = Annotated[str | None, typer.Option(help="Field of a .jsonl, or column of a .csv, that holds the text.")]
Format = Annotated[str | None, typer.Option(help="txt, jsonl or csv, whatever the suffix says.")]
Separator = Annotated[str, typer.Option(help="What ends a text of a .txt: line, blank (line) or file.")]
Human = Annotated[str | None, typer.Option(metavar="FILE", help="Human texts, in place of the embedded ones.")]
Limit = Annotated[int | None, typer.Option(help="Read only this many texts of each file.")]
Words = Annotated[int | None, typer.Option(help="Cut each text after this many words; leave out those with fewer.")]
Worst = Annotated[int, typer.Option(help="How many of the worst texts of each file to quote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Html = Annotated[Path | None, typer.Option(metavar="OUT", help="Write the report as one HTML page as well.")]


def command(
    files: Files = None,
    field: Field = None,
    format: Format = None,
    separator: Separator = "line",
    human: Human = None,
    limit: Limit = None,
    words: Words = None,
    worst: Worst = 3,
    as_json: AsJson = False,
    html: Html = None,
) -> None:
    """How repetitive are these texts? Figures beside human text of the same length.

    One table for one or several systems' files, with 95% intervals: repeated words and n-grams, texts that end stuck.
    Files with equally many texts are also compared text by text. The worst texts are quoted.

    Example: scalegrad measure mle.jsonl sg.jsonl --field continuation --html report.html
    """
    need("numpy", extra="measure")
    from scalegrad.results.measure import measure_files, report_as_dict
    from scalegrad.results.measure.page import check_path, write_page
    from scalegrad.results.measure.terminal import print_report

    sources = files or []
    if html:
        check_path(html)
    with bars() as progress:
        report = measure_files(
            sources,
            human,
            field=field,
            format=format,
            separator=separator,
            limit=limit,
            words=words,
            worst=worst,
            progress=progress,
        )
    if html:
        write_page(report, html)
    if as_json:
        print(json.dumps(report_as_dict(report), ensure_ascii=False, indent=2))
    else:
        print_report(report, Console())
