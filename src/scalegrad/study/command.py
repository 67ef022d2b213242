"""`scalegrad study`: people judge which system continues a text better."""

from __future__ import annotations

import json
import secrets
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Annotated

from cyclopts import App

from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.options import FLAT, AsJson, option
from scalegrad.study.design import QUESTION, TITLE
from scalegrad.study.folder import load_study

app = App(
    name="study",
    help="The paper's human study on your own models: draw one, serve its page, analyse the answers.\n\n"
    "Example: scalegrad study new mystudy --system mle=mle.jsonl --system sg=sg.jsonl",
)


@dataclass(frozen=True)
class Drawing:
    """What a study shows to whom."""

    folder: Path
    """A folder that does not exist yet."""
    _: KW_ONLY
    system: tuple[str, ...]
    """A system and its completions (JSONL), as NAME=FILE; two or more."""
    pair: tuple[str, ...] = ()
    """Systems to compare, as A:B; by default every two of them."""
    prefixes: int = 100
    """How many prefixes to draw, the same for every pair."""
    raters: str = "2"
    """How many raters, or their names: anna,ben."""
    seed: int = 0
    """Seed of the draw."""
    ties: bool = False
    """Allow “no difference”; by default a choice is forced."""
    checks: int = 0
    """Attention checks to make out of the prefixes."""
    checks_from: Path | None = None
    """Checks of your own: JSONL with prefix, right, wrong."""
    repeats: int = 0
    """Pairs shown a second time, for self-consistency."""
    closes: str | None = None
    """When answers stop: 2027-01-31 or 2027-01-31T18:00."""
    title: str = TITLE
    """Heading of the page."""
    question: str = QUESTION
    """What raters are asked."""
    url: str = "http://127.0.0.1:8000"
    """Where the page will be reached; the links start with it."""
    id_field: str = "id"
    """Field with the id of the prefix."""
    prefix_field: str = "prefix"
    """Field with the prefix."""
    field: str = "continuation"
    """Field with the continuation."""


@dataclass(frozen=True)
class Answers:
    """A study that is there."""

    folder: Path
    """The study's folder."""
    _: KW_ONLY
    database: Annotated[str | None, option(env_var="SCALEGRAD_STUDY_DATABASE")] = None
    """Where answers are kept, as a SQLAlchemy URL; by default the folder's own SQLite file."""


@app.command(sort_key=1)
def new(drawing: Annotated[Drawing, FLAT], *, as_json: AsJson = False) -> None:
    """Draw a study from what two or more systems wrote after the same prefixes.

    Example: scalegrad study new mystudy --system mle=mle.jsonl --system sg=sg.jsonl --pair sg:mle --raters anna,ben
    """
    from scalegrad.study import draw_study, read_checks, read_completions, write_study

    folder = drawing.folder
    if drawing.checks and drawing.checks_from:
        raise ValueError("--checks makes checks and --checks-from brings them: give one of the two")
    completions = read_completions(_systems(drawing.system), drawing.id_field, drawing.prefix_field, drawing.field)
    study = draw_study(
        completions,
        study_id=secrets.token_hex(4),
        pairs=[_pair(text) for text in drawing.pair] or None,
        prefixes=drawing.prefixes,
        raters=_raters(drawing.raters),
        seed=drawing.seed,
        ties=drawing.ties,
        checks=read_checks(drawing.checks_from) if drawing.checks_from else drawing.checks,
        repeats=drawing.repeats,
        closes=_moment(drawing.closes) if drawing.closes else None,
        title=drawing.title,
        question=drawing.question,
    )
    write_study(study, folder, drawing.url)
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


@app.command(sort_key=2)
def serve(
    study: Annotated[Answers, FLAT],
    *,
    host: Annotated[str, option(help="Address to listen on; 0.0.0.0 for all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, option(help="Port to listen on; 0 picks a free one.")] = 8000,
    show_results: Annotated[bool, option(help="Show the organiser results before the study closes.")] = False,
    log_requests: Annotated[bool, option(help="Log every request to stderr, personal links hidden.")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve the page that raters and the organiser open by their personal links.

    Example: scalegrad study serve mystudy --port 8000
    """
    load_study(study.folder)
    for package in ("sqlalchemy", "fastapi", "uvicorn", "jinja2", "itsdangerous", "python_multipart"):
        need(package, extra="study")
    from scalegrad.study.web import serve as serve_folder

    folder = study.folder

    def ready(address: str) -> None:
        links = str(folder / "links.csv")
        words = f"Serving {folder} on {address}; the links are in {links}. Ctrl+C stops it; answers are kept."
        print(json.dumps({"address": address, "links": links}) if as_json else words, flush=True)

    serve_folder(folder, study.database, host, port, show_results, log_requests, ready)


@app.command(sort_key=3)
def analyse(
    study: Annotated[Answers, FLAT],
    *,
    out: Annotated[
        Path | None, option(help="Folder to write report.html, pairs.csv, raters.csv and votes.csv to.")
    ] = None,
    most_failed: Annotated[
        int | None, option(help="Leave out raters who failed more than this many attention checks.")
    ] = None,
    level: Annotated[float, option(help="Coverage of the intervals.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Win rates with intervals, agreement, sign test, raters and position bias.

    Example: scalegrad study analyse mystudy --out results
    """
    load_study(study.folder)
    for package, extra in (("sqlalchemy", "study"), ("numpy", "measure"), ("jinja2", "study")):
        need(package, extra=extra)
    from rich.console import Console

    from scalegrad.study.analysis import analyse as analyse_answers
    from scalegrad.study.answers import open_answers
    from scalegrad.study.report import analysis_as_dict, print_analysis, write_report
    from scalegrad.study.votes import votes_of

    answers = open_answers(study.folder, study.database)
    votes = answers.all()
    english = {rater.rater: rater.english for rater in answers.overview()}
    analysis = analyse_answers(answers.study, votes, english, most_failed, level)
    if out:
        write_report(analysis, votes_of(answers.study, votes), out)
    if as_json:
        print(json.dumps(analysis_as_dict(analysis), ensure_ascii=False, indent=2))
        return
    print_analysis(analysis, Console())
    if out:
        print(f"Written: {out}/report.html, pairs.csv, raters.csv, votes.csv")


def _systems(texts: tuple[str, ...]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for text in texts:
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
