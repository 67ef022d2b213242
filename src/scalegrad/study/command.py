"""`scalegrad study`: people judge which system continues a text better."""

from __future__ import annotations

import json
import secrets
from datetime import datetime, time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from scalegrad.counts import counted
from scalegrad.extras import need

app = typer.Typer(
    help="The paper's human study on your own models: draw one, serve its page, analyse the answers.\n\n"
    "Example: scalegrad study new mystudy --system mle=mle.jsonl --system sg=sg.jsonl",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The study's folder.")]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="SCALEGRAD_STUDY_DATABASE",
        help="Where answers are kept, as a SQLAlchemy URL; by default the folder's own SQLite file.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that does not exist yet.")],
    system: Annotated[
        list[str], typer.Option(metavar="NAME=FILE", help="A system and its completions (JSONL); two or more.")
    ],
    pair: Annotated[
        list[str] | None, typer.Option(metavar="A:B", help="Systems to compare; by default every two of them.")
    ] = None,
    prefixes: Annotated[int, typer.Option(help="How many prefixes to draw, the same for every pair.")] = 100,
    raters: Annotated[str, typer.Option(help="How many raters, or their names: anna,ben.")] = "2",
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    ties: Annotated[bool, typer.Option("--ties", help="Allow “no difference”; by default a choice is forced.")] = False,
    checks: Annotated[int, typer.Option(help="Attention checks to make out of the prefixes.")] = 0,
    checks_from: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Checks of your own: JSONL with prefix, right, wrong.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Pairs shown a second time, for self-consistency.")] = 0,
    closes: Annotated[
        str | None, typer.Option(metavar="DATE", help="When answers stop: 2027-01-31 or 2027-01-31T18:00.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    question: Annotated[str | None, typer.Option(help="What raters are asked.")] = None,
    url: Annotated[
        str, typer.Option(help="Where the page will be reached; the links start with it.")
    ] = "http://127.0.0.1:8000",
    id_field: Annotated[str, typer.Option(help="Field with the id of the prefix.")] = "id",
    prefix_field: Annotated[str, typer.Option(help="Field with the prefix.")] = "prefix",
    continuation_field: Annotated[str, typer.Option(help="Field with the continuation.")] = "continuation",
    as_json: AsJson = False,
) -> None:
    """Draw a study from what two or more systems wrote after the same prefixes.

    Example: scalegrad study new mystudy --system mle=mle.jsonl --system sg=sg.jsonl --pair sg:mle --raters anna,ben
    """
    from scalegrad.study import draw_study, read_checks, read_completions, write_study
    from scalegrad.study.design import QUESTION, TITLE

    if checks and checks_from:
        raise ValueError("--checks makes checks and --checks-from brings them: give one of the two")
    completions = read_completions(_systems(system), id_field, prefix_field, continuation_field)
    study = draw_study(
        completions,
        study_id=secrets.token_hex(4),
        pairs=[_pair(text) for text in pair] if pair else None,
        prefixes=prefixes,
        raters=_raters(raters),
        seed=seed,
        ties=ties,
        checks=read_checks(checks_from) if checks_from else checks,
        repeats=repeats,
        closes=_moment(closes) if closes else None,
        title=title or TITLE,
        question=question or QUESTION,
    )
    write_study(study, folder, url)
    notes = study.notes()
    if study.question != QUESTION:
        notes.append("The question stands in place of the criteria; the other words on the raters' pages are English.")
    each = len(next(iter(study.sheets.values())))
    if as_json:
        made = {"folder": str(folder), "study": study.id, "raters": list(study.sheets), "items_per_rater": each}
        print(json.dumps(made | {"links": str(folder / "links.csv"), "notes": notes}, ensure_ascii=False))
        return
    pairs = ", ".join(map(":".join, study.pairs))
    print(f"{folder}: {counted(len(study.sheets), 'rater')}, {counted(each, 'item')} each ({pairs}).")
    for note in notes:
        print(f"Note: {note}")
    print(f"Personal links, and yours as the organiser: {folder / 'links.csv'} (keep it to yourself)")
    print(f"Next: scalegrad study serve {folder}")


@app.command()
def serve(
    folder: Folder,
    database: Database = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.")] = 8000,
    show_results: Annotated[
        bool, typer.Option("--show-results", help="Show the organiser results before the study closes.")
    ] = False,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log every request to stderr, personal links hidden.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve the page that raters and the organiser open by their personal links.

    Example: scalegrad study serve mystudy --port 8000
    """
    for package in ("sqlalchemy", "fastapi", "uvicorn", "jinja2", "itsdangerous", "python_multipart"):
        need(package, extra="study")
    from scalegrad.study.web import serve as serve_folder

    def ready(address: str) -> None:
        links = str(folder / "links.csv")
        words = f"Serving {folder} on {address}; the links are in {links}. Ctrl+C stops it; answers are kept."
        print(json.dumps({"address": address, "links": links}) if as_json else words, flush=True)

    serve_folder(folder, database, host, port, show_results, log_requests, ready)


@app.command()
def analyse(
    folder: Folder,
    database: Database = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write report.html, pairs.csv, raters.csv and votes.csv here.")
    ] = None,
    most_failed: Annotated[
        int | None, typer.Option(metavar="N", help="Leave out raters who failed more than N attention checks.")
    ] = None,
    level: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Win rates with intervals, agreement, sign test, raters and position bias.

    Example: scalegrad study analyse mystudy --out results
    """
    for package, extra in (("sqlalchemy", "study"), ("numpy", "measure"), ("jinja2", "study")):
        need(package, extra=extra)
    from scalegrad.study.analysis import analyse as analyse_answers
    from scalegrad.study.answers import open_answers
    from scalegrad.study.report import analysis_as_dict, print_analysis, write_report
    from scalegrad.study.votes import votes_of

    answers = open_answers(folder, database)
    given = answers.all()
    english = {rater.rater: rater.english for rater in answers.overview()}
    analysis = analyse_answers(answers.study, given, english, most_failed, level)
    if out:
        write_report(analysis, votes_of(answers.study, given), out)
    if as_json:
        print(json.dumps(analysis_as_dict(analysis), ensure_ascii=False, indent=2))
        return
    print_analysis(analysis, Console())
    if out:
        print(f"Written: {out}/report.html, pairs.csv, raters.csv, votes.csv")


def _systems(given: list[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (name and equals and file) or name in files:
            raise ValueError(f"--system must be NAME=FILE, each name once, not {text!r}")
        files[name] = Path(file)
    return files


def _pair(text: str) -> tuple[str, str]:
    one, colon, other = text.partition(":")
    if not (one and colon and other):
        raise ValueError(f"--pair must be A:B, two names of systems, not {text!r}")
    return one, other


def _raters(text: str) -> list[str]:
    if text.isdecimal():
        return [f"rater-{number}" for number in range(1, int(text) + 1)]
    return [name.strip() for name in text.split(",")]


def _moment(text: str) -> datetime:
    """A day ends at its end; a moment without a time zone is meant where this machine stands."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"--closes must be a date like 2027-01-31 or 2027-01-31T18:00, not {text!r}") from None
    if len(text) <= len("2027-01-31"):
        moment = datetime.combine(moment, time.max.replace(microsecond=0))
    return moment if moment.tzinfo else moment.astimezone()
