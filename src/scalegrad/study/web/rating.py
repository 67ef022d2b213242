"""The rater's pages: welcome, one item after another, thanks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from scalegrad.study.answers import Outcome, Progress
from scalegrad.study.design import QUESTION, Choice
from scalegrad.study.web.site import OfRater, OfRaterForm, OfSite, Refused, Site

router = APIRouter()

English = Literal["native", "fluent", "good", "basic"]
Note = Literal["kept", "stale", "quick", "undone"]
Number = Annotated[int, Form(ge=1, le=1_000_000)]
Attempt = Annotated[int, Form(ge=0, le=1_000_000)]
MOST_COMMENT = 2000

NOTES: dict[Note, str] = {
    "kept": "That one was answered before, perhaps in another tab: the earlier answer stands. Undo changes it.",
    "stale": "That page was out of date, so its answer was not recorded. Here is where you are.",
    "quick": "That came so fast that it looked like a double click, so it was not recorded. Please choose again.",
    "undone": "Your last answer is taken back. Please choose again.",
}


@router.get("/", response_class=HTMLResponse)
def front(site: OfSite, request: Request) -> Response:
    """The bare address: raters go on, everybody else is told how to enter."""
    if site.secrets.asking(request.cookies.get(site.cookie_name("rater"))):
        return RedirectResponse("/rate", 303)
    sentence = "To take part, open the personal link that was sent to you."
    return site.page("message.html", heading=site.study.title, sentences=[sentence])


@router.get("/r/{token}", response_class=RedirectResponse, status_code=303)
def enter(site: OfSite, request: Request, token: Annotated[str, Path(max_length=200)]) -> Response:
    """A personal link: its token becomes a cookie and leaves the address bar."""
    return site.enter(request, token, "rater", "/rate")


@router.get("/rate", response_class=HTMLResponse)
def rate(site: OfSite, rater: OfRater, note: Annotated[str, Query(max_length=20)] = "") -> Response:
    """Whatever comes next for this rater."""
    progress = site.answers.progress(rater)
    values: dict[str, Any] = {
        "rater": rater,
        "form": site.secrets.form_token(rater),
        "progress": progress,
        "total": len(site.study.sheets[rater]),
        "note": NOTES.get(note, ""),  # type: ignore[call-overload]
    }
    if progress.closed:
        return site.page("closed.html", **values)
    if progress.started_at is None:
        return site.page("welcome.html", **values, usual_question=QUESTION)
    if progress.answered == values["total"]:
        return site.page("done.html", **values)
    return site.page("item.html", **values, **_item(site, rater, progress))


def _item(site: Site, rater: str, progress: Progress) -> dict[str, Any]:
    number = progress.answered + 1
    _, item = site.study.shown(rater, number)
    comment = site.answers.undone_comment(rater, number) if progress.attempt else ""
    # Only what is shown goes to the template: the item's systems stay here.
    return {
        "number": number,
        "prefix": item.prefix,
        "texts": site.study.texts(rater, number),
        "comment": comment,
        "most_comment": MOST_COMMENT,
    }


@router.post("/start", response_class=RedirectResponse, status_code=303)
def start(site: OfSite, rater: OfRaterForm, english: Annotated[English, Form()]) -> Response:
    """The rater has read what to do and said how well they know English."""
    site.answers.start(rater, english)
    return RedirectResponse("/rate", 303)


@router.post("/answer", response_class=RedirectResponse, status_code=303)
def answer(
    site: OfSite,
    rater: OfRaterForm,
    number: Number,
    attempt: Attempt,
    choice: Annotated[Choice, Form()],
    comment: Annotated[str, Form(max_length=2 * MOST_COMMENT)] = "",
) -> Response:
    """An answer; it is stored before this responds."""
    if choice == "tie" and not site.study.ties:
        raise Refused(422, "Please choose one of the two", "This study has no ties. Nothing was recorded.")
    return _onward(site.answers.answer(rater, number, attempt, choice, _cleaned(comment)))


@router.post("/undo", response_class=RedirectResponse, status_code=303)
def undo(site: OfSite, rater: OfRaterForm, number: Number, attempt: Attempt) -> Response:
    """Take back the last answer."""
    return _onward(site.answers.undo(rater, number, attempt))


def _onward(outcome: Outcome) -> Response:
    return RedirectResponse(f"/rate?note={outcome.value}" if outcome.value in NOTES else "/rate", 303)


def _cleaned(comment: str) -> str:
    # Browsers send \r\n; PostgreSQL takes no NUL.
    return comment.replace("\r\n", "\n").replace("\0", "").strip()
