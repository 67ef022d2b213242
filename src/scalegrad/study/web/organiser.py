"""The organiser's page: who is how far, and once the study is closed what came out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from scalegrad.study.web.site import OfOrganiser, OfOrganiserForm, OfSite, Refused, Site

router = APIRouter()


@router.get("/o/{token}", response_class=RedirectResponse, status_code=303)
def enter(site: OfSite, request: Request, token: Annotated[str, Path(max_length=200)]) -> Response:
    """The organiser's link, exchanged for a cookie as a rater's is."""
    return site.enter(request, token, "organiser", "/organiser")


@router.get("/organiser", response_class=HTMLResponse)
def overview(site: OfSite, organiser: OfOrganiser) -> Response:
    """Progress of every rater; results only when they may be seen."""
    from scalegrad.study.report import result_words

    raters = site.answers.overview()
    closed = site.answers.closed()
    return site.page(
        "organiser.html",
        raters=raters,
        totals={rater: len(sheet) for rater, sheet in site.study.sheets.items()},
        given=sum(rater.answered for rater in raters),
        wanted=sum(map(len, site.study.sheets.values())),
        closed=closed,
        by_date=site.study.closes,
        form=site.secrets.form_token(organiser),
        results=_results(site) if _may_be_seen(site, closed) else None,
        **result_words(),
    )


@router.get("/organiser/votes.csv")
def votes(site: OfSite, organiser: OfOrganiser) -> Response:
    """The raw votes, once the results may be seen."""
    from scalegrad.study.votes import votes_csv, votes_of

    if not _may_be_seen(site, site.answers.closed()):
        raise Refused(403, "The study is still open", "Votes can be taken out once it is closed.")
    body = votes_csv(votes_of(site.study, site.answers.all()))
    return Response(body, media_type="text/csv", headers={"Content-Disposition": 'attachment; filename="votes.csv"'})


@router.post("/organiser/close", response_class=RedirectResponse, status_code=303)
def close(site: OfSite, organiser: OfOrganiserForm) -> Response:
    """Take no more answers."""
    site.answers.set_closed(True)
    return RedirectResponse("/organiser", 303)


@router.post("/organiser/open", response_class=RedirectResponse, status_code=303)
def reopen(site: OfSite, organiser: OfOrganiserForm) -> Response:
    """Take answers again."""
    site.answers.set_closed(False)
    return RedirectResponse("/organiser", 303)


def _may_be_seen(site: Site, closed: bool) -> bool:
    return closed or site.show_results


def _results(site: Site) -> object:
    from scalegrad.study.analysis import analyse

    english = {rater.rater: rater.english for rater in site.answers.overview()}
    return analyse(site.study, site.answers.all(), english)
