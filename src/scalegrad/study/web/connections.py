"""Limits on connections: how many there may be, and how long one may take to say what it wants.

uvicorn has neither: a connection that sends nothing, or half of its headers, would stay for ever.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
_MOST = 1000
# Connections taken in one turn of the event loop, before the first of them can be counted.
ACCEPTED_AT_ONCE = 32
# Files that are no connections: the database, static files, and those accepted at once.
_OTHER_FILES = 128


def most_connections() -> int:
    """How many connections may be open: fewer than the files this process may open."""
    if sys.platform == "win32":
        return _MOST
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else max(16, min(_MOST, files - _OTHER_FILES))


class LimitedProtocol(H11Protocol):
    """HTTP that closes a connection too many at once, and one whose request is not complete up to its body in time."""

    most = most_connections()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._watch_headers()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_deadline()

    def _watch_headers(self) -> None:
        if self.conn.their_state is not h11.IDLE:  # the headers are complete
            self._stop_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


_accept_errors: set[int | None] = set()


def on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in the event loop; of connections that cannot be accepted, each kind of error once.

    asyncio tries to accept again a second later, and would log a traceback for each connection that waits.
    """
    error = context.get("exception")
    if not isinstance(error, OSError) or not str(context.get("message")).startswith("socket.accept()"):
        loop.default_exception_handler(context)
    elif error.errno not in _accept_errors:
        _accept_errors.add(error.errno)
        logging.getLogger("uvicorn.error").warning("connections have to wait: %s", error)
