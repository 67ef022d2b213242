"""What every page needs: the study, its answers, who is asking, and the templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import jinja2
from fastapi import Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from scalegrad._version import __version__
from scalegrad.counts import are, counted
from scalegrad.study.access import COOKIE_SECONDS, ORGANISER, Secrets
from scalegrad.study.answers import Answers
from scalegrad.study.design import Study
from scalegrad.study.web.texts import last_words, readable

HERE = Path(__file__).parent


class Refused(Exception):
    """A request that gets a page with a sentence instead of what it asked for."""

    def __init__(self, status: int, heading: str, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.heading, self.sentence, self.headers = status, heading, sentence, headers


def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(readable=readable, last_words=last_words)
    templates.globals.update(counted=counted, are=are)
    return templates


@dataclass(frozen=True)
class Site:
    """One study on the web."""

    study: Study
    secrets: Secrets
    answers: Answers
    show_results: bool = False
    templates: jinja2.Environment = field(default_factory=_templates)

    def page(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
    ) -> HTMLResponse:
        """Render a template; every value is escaped."""
        common = {"study": self.study, "version": __version__}
        return HTMLResponse(self.templates.get_template(template).render(common | values), status, headers)

    def refusal(self, refused: Refused) -> HTMLResponse:
        """The page that says no."""
        return self.page(
            "message.html", refused.status, refused.headers, heading=refused.heading, sentences=[refused.sentence]
        )

    def cookie_name(self, role: str) -> str:
        """The name of the cookie of raters or of the organiser; two studies on one host do not share it."""
        return f"{role}_{self.study.id}"

    def enter(self, request: Request, token: str, role: str, target: str) -> RedirectResponse:
        """Exchange the token of a personal link for a cookie at once, so that the link leaves the address bar."""
        who = self.secrets.who(token)
        if who is None or (who == ORGANISER) != (role == "organiser"):
            raise Refused(404, "This link is not valid", "Please check that you copied your personal link whole.")
        response = RedirectResponse(target, 303)
        response.set_cookie(
            self.cookie_name(role),
            self.secrets.cookie(who),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return response


async def _site(request: Request) -> Site:
    # async, as what follows: nothing here waits, and FastAPI would send a plain function to another thread.
    site = request.app.state.site
    assert isinstance(site, Site)
    return site


OfSite = Annotated[Site, Depends(_site)]


def _asking(request: Request, site: Site, role: str) -> str:
    who = site.secrets.asking(request.cookies.get(site.cookie_name(role)))
    if who is None or (who == ORGANISER) != (role == "organiser"):
        raise Refused(
            403, "Please open your personal link", "This page opens with the personal link that was sent to you."
        )
    return who


async def _rater(request: Request, site: OfSite) -> str:
    return _asking(request, site, "rater")


async def _organiser(request: Request, site: OfSite) -> str:
    return _asking(request, site, "organiser")


OfRater = Annotated[str, Depends(_rater)]
OfOrganiser = Annotated[str, Depends(_organiser)]


def _sender(site: Site, who: str, form: str) -> str:
    if not site.secrets.form_is_of(who, form):
        raise Refused(403, "This form is not yours", "It was made for another visitor. Nothing was recorded.")
    return who


async def _rater_form(site: OfSite, rater: OfRater, form: Annotated[str, Form(max_length=64)]) -> str:
    return _sender(site, rater, form)


async def _organiser_form(site: OfSite, organiser: OfOrganiser, form: Annotated[str, Form(max_length=64)]) -> str:
    return _sender(site, organiser, form)


# Who sent a form, once its token is found to be theirs.
OfRaterForm = Annotated[str, Depends(_rater_form)]
OfOrganiserForm = Annotated[str, Depends(_organiser_form)]
