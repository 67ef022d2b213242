"""A browser without a screen: follows links, reads forms, sends them."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from scalegrad.study.web import create_app


def made_app(folder: Path, quickest: float = 0.0, **options: Any) -> FastAPI:
    return create_app(folder, quickest=quickest, **options)


class Visitor:
    """One person's browser on an application."""

    def __init__(self, app: FastAPI, address: str = "192.0.2.1") -> None:
        # Mistakes of the server become a 500, as in the world, and not an exception in the test.
        self.client = TestClient(app, follow_redirects=False, raise_server_exceptions=False, client=(address, 50000))

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def page(self) -> str:
        """What the rater sees now."""
        response = self.client.get("/rate")
        assert response.status_code == 200, response.text
        return str(response.text)

    def enter(self, link: str, english: str = "native") -> None:
        """Open the personal link and begin."""
        assert self.client.get(link).headers["location"] == "/rate"
        form = fields(self.page(), "/start")
        assert self.client.post("/start", data=form | {"english": english}).status_code == 303

    def answer(self, choice: str, comment: str = "", changes: dict[str, str] | None = None) -> Any:
        """Answer what is shown now."""
        form = fields(self.page(), "/answer") | {"choice": choice, "comment": comment} | (changes or {})
        return self.client.post("/answer", data=form)

    def undo(self) -> Any:
        return self.client.post("/undo", data=fields(self.page(), "/undo"))

    def number(self) -> int:
        """The number of the item that is shown now."""
        return int(fields(self.page(), "/answer")["number"])


def fields(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the form that goes to `action`."""
    form = re.search(rf'<form method="post" action="{action}".*?</form>', page, re.DOTALL)
    assert form, f"the page has no form for {action}"
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form.group())
    return {name: html.unescape(value) for name, value in found}
