"""The application, and a server that runs it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from scalegrad.study.answers import Answers
from scalegrad.study.folder import default_database, load_secrets, load_study
from scalegrad.study.web import organiser, rating
from scalegrad.study.web.connections import ACCEPTED_AT_ONCE, LimitedProtocol, on_loop_error
from scalegrad.study.web.guards import HEADERS, Guard, hide_links_in_logs
from scalegrad.study.web.site import HERE, Refused, Site

_log = logging.getLogger("uvicorn.error")


def create_app(
    folder: str | Path, database: str | None = None, show_results: bool = False, quickest: float = 0.4
) -> FastAPI:
    """The web application of a study folder.

    `database` is a SQLAlchemy URL, by default the folder's own SQLite file; `show_results` shows them before the study
    closes; `quickest` is the least time in seconds between two answers that are not a double click.
    """
    study = load_study(folder)
    answers = Answers(database or default_database(folder), study, quickest)
    site = Site(study, load_secrets(folder), answers, show_results)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        answers.dispose()

    # The interactive documentation would load scripts from elsewhere; the OpenAPI itself is app.openapi().
    app = FastAPI(title="scalegrad study", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.site = site
    app.include_router(rating.router)
    app.include_router(organiser.router)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    app.add_middleware(Guard)
    _add_refusals(app, site)
    hide_links_in_logs()
    return app


def _add_refusals(app: FastAPI, site: Site) -> None:
    """Every mistake gets a page with a sentence."""

    @app.exception_handler(Refused)
    def refused(_: Request, error: Refused) -> HTMLResponse:
        return site.refusal(error)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> HTMLResponse:
        return site.refusal(Refused(422, "That could not be read", "The form was not complete. Nothing was recorded."))

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> HTMLResponse:
        headings = {404: "There is no such page", 405: "That cannot be done here"}
        heading = headings.get(error.status_code, "That did not work")
        headers = dict(error.headers or {})
        return site.refusal(Refused(error.status_code, heading, "Your answers are safe.", headers))

    @app.exception_handler(MemoryError)  # what SQLite's driver makes of SQLITE_NOMEM
    @app.exception_handler(SQLAlchemyError)
    def unavailable(_: Request, error: Exception) -> HTMLResponse:
        _log.error("the database failed: %s: %s", type(error).__name__, error)
        # Nobody knows whether a commit that failed has reached the disk; sending the answer again settles it.
        sentence = (
            "The study's storage failed just now. If you sent an answer, please go back and send it again: it counts "
            "once, however often it is sent."
        )
        return site.refusal(Refused(503, "One moment, please", sentence, {"Retry-After": "5"}))

    @app.exception_handler(Exception)
    def failed(_: Request, error: Exception) -> HTMLResponse:
        # This page is made outside the guard, which would add the headers.
        return site.refusal(Refused(500, "Something went wrong", "The organiser's log says what.", dict(HEADERS)))


def serve(
    folder: str | Path,
    database: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    show_results: bool = False,
    log_requests: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve a study until interrupted.

    `ready` is called with the address once requests are taken; port 0 picks a free one. Behind a proxy on another
    machine, uvicorn's own variable FORWARDED_ALLOW_IPS names whose X-Forwarded headers to believe.
    """
    app = create_app(folder, database, show_results)
    _log_to_stderr()
    config = uvicorn.Config(
        app,
        log_level="info" if log_requests else "warning",
        access_log=log_requests,
        log_config=None,
        http=LimitedProtocol,
        ws="none",  # an upgraded connection would escape the limits
        backlog=ACCEPTED_AT_ONCE,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    with _listening(host, port) as listener:
        name = f"[{host}]" if ":" in host else host
        _Server(config, lambda: ready(f"http://{name}:{listener.getsockname()[1]}")).run(sockets=[listener])


def _log_to_stderr() -> None:
    """Set up the server's own logs; uvicorn's way, `logging.config`, closes the handlers of every other library too."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name in ("uvicorn", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: only then does asyncio send small packets at once, and not 40 ms later.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise ValueError(f"cannot listen on port {port} of {host}: {error}") from None
    return listener


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(on_loop_error)
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(2048)  # however few are accepted at once, the others wait in line
        self._ready()
