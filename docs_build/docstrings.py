"""Examples in docstrings as blocks of code: to Markdown a bare `>>>` is a quotation in a quotation in a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)  # to the next blank line


class FencedExamples(griffe.Extension):
    """For mkdocstrings: every docstring goes through `fenced`."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
