"""Connections that send nothing, or half a request: they end in time, and never keep raters out or fill the log."""

from __future__ import annotations

import asyncio
import errno
import json
import resource
import select
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from scalegrad.study.web.connections import on_loop_error
from tests.study.studies import made_folder

# `study serve` with less patience, so that the test need not wait long.
SERVE = """
import sys
from scalegrad.study.web import connections
connections.HEADER_SECONDS = float(sys.argv.pop(1))
from scalegrad.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server that may open 256 files: its address, the path of a rater's link, and where its errors go."""
    folder = tmp_path_factory.mktemp("connections")
    _, links = made_folder(folder / "study")
    command = [sys.executable, "-c", SERVE, "2", "study", "serve", str(folder / "study"), "--port", "0", "--json"]

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    with (folder / "log").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=limit)
    try:
        url = urlsplit(json.loads(process.stdout.readline())["address"])
        yield (url.hostname, url.port), links["rater-1"], folder / "log"
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def open_all(stack, address, count, first=b""):
    clients = []
    for _ in range(count):
        client = stack.enter_context(closing(socket.create_connection(address, timeout=10)))
        client.sendall(first)
        clients.append(client)
    return clients


def alive(clients):
    """The connections that the server has not closed."""
    poll = select.poll()
    for client in clients:
        poll.register(client, select.POLLIN)
    ended = {number for number, _ in poll.poll(0)}
    return [client for client in clients if client.fileno() not in ended]


def wait_until_closed(clients, seconds):
    end = time.monotonic() + seconds
    while alive(clients) and time.monotonic() < end:
        time.sleep(0.05)
    return len(alive(clients))


def status(address, path="/"):
    with closing(HTTPConnection(*address, timeout=10)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def test_half_sent_headers_and_silence_are_cut_off(served):
    address, link, log = served
    with ExitStack() as stack:
        silent = open_all(stack, address, 30)
        half = open_all(stack, address, 60, b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert status(address, link) == 303  # raters go on meanwhile
        # One more header line now and then does not buy more time.
        end = time.monotonic() + 10
        while alive(half) and time.monotonic() < end:
            for client in alive(half):
                with suppress(OSError):  # closed just now
                    client.sendall(b"X-More: 1\r\n")
            time.sleep(0.2)
        assert (len(alive(half)), wait_until_closed(silent, 10)) == (0, 0)
    assert log.read_text() == ""


def test_half_a_second_request_on_an_open_connection_is_cut_off(served):
    with ExitStack() as stack:
        clients = []
        for _ in range(10):
            connection = stack.enter_context(closing(HTTPConnection(*served[0], timeout=10)))
            connection.request("GET", "/")
            assert connection.getresponse().read()
            connection.sock.sendall(b"GET / HTTP/1.1\r\n")
            clients.append(connection.sock)
        assert wait_until_closed(clients, 10) == 0


def test_a_request_that_arrives_in_pieces_is_answered(served):
    with ExitStack() as stack:
        (client,) = open_all(stack, served[0], 1)
        for piece in (b"GET / HT", b"TP/1.1\r\nHost", b": x\r\n\r\n"):
            client.sendall(piece)
            time.sleep(0.1)
        assert client.recv(65536).startswith(b"HTTP/1.1 200")


def test_more_connections_than_files_leave_the_log_empty_and_raters_come_back(served):
    address, link, log = served
    with ExitStack() as stack:
        crowd = open_all(stack, address, 300)
        time.sleep(0.5)
        assert log.read_text()[:2000] == ""
        assert 100 <= len(alive(crowd)) <= 160
        assert wait_until_closed(crowd, 15) == 0
        assert status(address, link) == 303
    assert log.read_text()[:2000] == ""


def test_errors_while_accepting_are_one_line_and_other_errors_are_shown(caplog):
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(on_loop_error)
    full = OSError(errno.EMFILE, "Too many open files")
    for _ in range(1000):
        loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": full})
    assert [record.getMessage() for record in caplog.records if "Too many open files" in record.getMessage()] == [
        "connections have to wait: [Errno 24] Too many open files"
    ]
    loop.call_exception_handler({"message": "something else"})
    assert "something else" in caplog.text
    loop.close()
