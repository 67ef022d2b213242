"""What stands between the network and the pages: headers, body size, and links in logs."""

from __future__ import annotations

import asyncio
import logging
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A comment of 2,000 signs takes at most 18 kB in a form.
MOST_BYTES = 64 * 1024
_BODY_SECONDS = 20
_FORM = b"application/x-www-form-urlencoded"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware: every response gets the security headers; bodies that are too large, too slow or no form are
    turned away before any page sees them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        secure = scope["scheme"] == "https"
        lasting = scope["path"].startswith("/static/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _completed(list(message.get("headers", ())), secure, lasting)}
            await send(message)

        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await _whole_body(scope, receive)
        except TimeoutError:
            await _refuse(send_with_headers, 408, "The request took too long to arrive.")
            return
        if body is None:
            return
        if len(body) > MOST_BYTES:
            await _refuse(send_with_headers, 413, "The request is too large.")
            return
        if body and dict(scope["headers"]).get(b"content-type", b"").split(b";")[0].strip().lower() != _FORM:
            await _refuse(send_with_headers, 415, "Only a form can be sent here.")
            return
        replayed = False

        async def receive_again() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, receive_again, send_with_headers)


async def _whole_body(scope: Scope, receive: Receive) -> bytes | None:
    """The body, or one byte more than is allowed; None when the client has gone."""
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if announced.isdigit() and int(announced[:20]) > MOST_BYTES:
        return bytes(MOST_BYTES + 1)
    body = b""
    while len(body) <= MOST_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def _completed(headers: list[tuple[bytes, bytes]], secure: bool, lasting: bool) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in headers}
    wanted = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if secure else {})
    if lasting:
        wanted = wanted | {"Cache-Control": "public, max-age=3600"}
    more = [(name.lower().encode(), value.encode()) for name, value in wanted.items()]
    return headers + [(name, value) for name, value in more if name not in present]


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = f"<!doctype html><title>{status}</title><p>{sentence} Nothing was recorded.</p>".encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_LINK = re.compile(r"/([ro])/[^\s\"'?#]+")


class HideLinks(logging.Filter):
    """Keeps personal links out of a log: what follows /r/ or /o/ is replaced.

    >>> record = logging.makeLogRecord({"msg": "%s %s %d", "args": ("GET", "/r/s3cret?x=1", 303)})
    >>> HideLinks().filter(record), record.getMessage()
    (True, 'GET /r/(hidden)?x=1 303')
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; never drop it."""
        if isinstance(record.args, tuple):  # uvicorn's own formatter wants them one by one
            record.msg, record.args = _hidden(record.msg), tuple(map(_hidden, record.args))
        else:
            record.msg, record.args = _hidden(record.getMessage()), ()
        return True


def _hidden(value: object) -> object:
    return value if isinstance(value, int | float) else _LINK.sub(r"/\1/(hidden)", str(value))


def hide_links_in_logs() -> None:
    """Put the filter on every log of the server; a second call changes nothing."""
    for name in ("uvicorn", "uvicorn.access", "uvicorn.error", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, HideLinks) for known in logger.filters):
            logger.addFilter(HideLinks())
