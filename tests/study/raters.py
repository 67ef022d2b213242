"""Simulated raters of a human study: hundreds of them on a real server, every answer accounted for.

Each opens their link and answers at a steady pace; what the server acknowledged is then held against what the database
keeps. A request that fails is sent again, as a person with a lost connection would.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from scalegrad.study import Completions, draw_study, write_study
from scalegrad.study.answers import open_answers
from scalegrad.study.design import Choice

_TEXT = "the horses are brown and white and stand in a wide field near the old river while it rains again"
_WORDS = _TEXT.split()


@dataclass
class Load:
    """What raters saw: acknowledged answers and the time each request took, in seconds."""

    acknowledged: dict[tuple[str, int], Choice] = field(default_factory=dict)
    answer_seconds: list[float] = field(default_factory=list)
    page_seconds: list[float] = field(default_factory=list)
    retries: int = 0
    statuses: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """Acknowledged answers held against the database.

    `lost`: acknowledged and not there, or there with another choice. `doubled`: there more than once. `gaps`: raters
    whose answers are not 1 … k. `unacknowledged`: there, though the raters' side never heard so (a server that died).
    """

    stored: int
    lost: int
    doubled: int
    gaps: int
    unacknowledged: int


def make_folder(folder: Path, raters: int, items: int) -> dict[str, str]:
    """A study of made-up texts; gives every rater's link (of a server at no address: only the path counts)."""
    texts = {
        system: {str(i): " ".join(_WORDS[(i + shift + j) % len(_WORDS)] for j in range(80)) for i in range(items)}
        for system, shift in (("one", 3), ("two", 7))
    }
    prefixes = {str(i): " ".join(_WORDS[(i + j) % len(_WORDS)] for j in range(40)) for i in range(items)}
    names = [f"rater-{i + 1}" for i in range(raters)]
    study = draw_study(Completions(prefixes, texts), study_id="load", prefixes=items, raters=names)
    write_study(study, folder)
    with (folder / "links.csv").open(newline="") as rows:
        return {row["who"]: row["link"] for row in csv.DictReader(rows) if row["who"] in study.sheets}


@contextmanager
def server(
    folder: Path, database: str | None = None, port: int = 0, log: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`scalegrad study serve` in a process of its own: its address and the process. `log` takes a line a request."""
    command = [sys.executable, "-m", "scalegrad.cli", "study", "serve", str(folder), "--port", str(port), "--json"]
    environment = os.environ | ({"SCALEGRAD_STUDY_DATABASE": database} if database else {})
    with ExitStack() as stack:
        if log:
            command.append("--log-requests")
        errors = stack.enter_context(log.open("w")) if log else None
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start")
        yield json.loads(line)["address"], process
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout:
            process.stdout.close()


def wanted_choice(rater: str, number: int) -> Choice:
    """What a simulated rater answers: settled beforehand, so that a wrong record shows."""
    return "first" if (len(rater) + int(rater.rsplit("-", 1)[1]) * 7 + number * 3) % 5 < 3 else "second"


async def run_load(address: str, links: dict[str, str], seconds: float, pause: float, load: Load | None = None) -> Load:
    """Let every rater answer every `pause` seconds for `seconds`; what was acknowledged is noted in `load` at once."""
    load = load or Load()
    end = time.monotonic() + seconds
    visitors = [(_Visitor(address, load), rater, link) for rater, link in links.items()]
    delays = [pause * turn / len(links) for turn in range(len(links))]
    await asyncio.gather(*(_rate(*who, end, pause, delay) for who, delay in zip(visitors, delays, strict=True)))
    return load


async def run_killed(
    folder: Path, database: str | None, links: dict[str, str], seconds: float, pause: float, kill_after: Sequence[int]
) -> tuple[Load, list[Audit]]:
    """`run_load` on a server that is killed (SIGKILL) after each number of answers, another following on its port.

    Gives the whole load, and the audits of the database as each killed server left it.
    """
    load, audits, port = Load(), [], 0
    rating: asyncio.Task[Load] | None = None
    for answers in kill_after:
        with server(folder, database, port) as (address, process):
            port = int(address.rsplit(":", 1)[1])
            rating = rating or asyncio.create_task(run_load(address, links, seconds, pause, load))
            while len(load.acknowledged) < answers and not rating.done():
                await asyncio.sleep(0.01)
            process.kill()
            process.wait()
            heard = Load(acknowledged=dict(load.acknowledged))
        audits.append(await asyncio.to_thread(audit, folder, database, heard))
    with server(folder, database, port):
        if rating:
            await rating
    return load, audits


class _Visitor:
    """One rater's browser: one connection, one cookie, and patience when the server is away.

    Written on bare streams: with a connection each for hundreds of raters, client libraries take more of the machine
    than the server under test.
    """

    def __init__(self, address: str, load: Load) -> None:
        self.load = load
        url = urlsplit(address)
        self._host, self._port = url.hostname, url.port
        self._cookie = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[str, str, float]:
        """Where it leads on to, body and seconds of one request, sent again until it is answered."""
        while True:
            start = time.perf_counter()
            try:
                status, headers, body = await self._exchange(method, path, urlencode(form or {}).encode())
            except (OSError, EOFError):
                self.close()
                self.load.retries += 1
                await asyncio.sleep(0.2)
                continue
            if "set-cookie" in headers:
                self._cookie = headers["set-cookie"].split(";")[0]
            self.load.statuses[status] = self.load.statuses.get(status, 0) + 1
            if status >= 500:  # the page asks to send it again
                self.load.retries += 1
                await asyncio.sleep(0.2)
                continue
            return headers.get("location", ""), body, time.perf_counter() - start

    async def _exchange(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], str]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nCookie: {self._cookie}\r\n"
        head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        answer = await reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return int(first.split()[1]), headers, answer.decode()

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _rate(visitor: _Visitor, rater: str, link: str, end: float, pause: float, delay: float) -> None:
    await asyncio.sleep(delay)
    load = visitor.load
    await visitor.ask("GET", "/r/" + link.rsplit("/", 1)[1])
    _, page, _ = await visitor.ask("GET", "/rate")
    if 'action="/start"' in page:
        await visitor.ask("POST", "/start", {"form": _hidden(page, "form"), "english": "fluent"})
        _, page, _ = await visitor.ask("GET", "/rate")
    turn = time.monotonic()
    while time.monotonic() < end and 'action="/answer"' in page:
        number = int(_hidden(page, "number", after='action="/answer"'))
        choice = wanted_choice(rater, number)
        form = {name: _hidden(page, name, after='action="/answer"') for name in ("form", "number", "attempt")}
        onward, _, took = await visitor.ask("POST", "/answer", form | {"choice": choice, "comment": ""})
        load.answer_seconds.append(took)
        if onward == "/rate":  # with a note it would say why nothing was recorded
            load.acknowledged[rater, number] = choice
        _, page, took = await visitor.ask("GET", "/rate")
        load.page_seconds.append(took)
        turn = max(turn + pause, time.monotonic() + pause / 2)  # who was kept waiting reads on for a while
        await asyncio.sleep(max(0.0, turn - time.monotonic()))
    visitor.close()


def _hidden(page: str, name: str, after: str = "") -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page[page.index(after) :])
    if not found:
        raise ValueError(f"the page has no field {name!r}")
    return found.group(1)


def audit(folder: Path, database: str | None, load: Load) -> Audit:
    """Hold what was acknowledged against what is stored."""
    answers = open_answers(folder, database)
    stored = answers.all()
    answers.dispose()
    kept = {(answer.rater, answer.number): answer.choice for answer in stored}
    numbers: dict[str, list[int]] = {}
    for answer in stored:
        numbers.setdefault(answer.rater, []).append(answer.number)
    return Audit(
        stored=len(stored),
        lost=sum(kept.get(key) != choice for key, choice in load.acknowledged.items()),
        doubled=len(stored) - len(kept),
        gaps=sum(sorted(mine) != list(range(1, len(mine) + 1)) for mine in numbers.values()),
        unacknowledged=sum(key not in load.acknowledged for key in kept),
    )
