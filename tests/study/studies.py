"""Studies to test with, made of small texts."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from scalegrad.study import Completions, Study, draw_study, write_study

_TEXT = "river stone bridge winter market lantern orchard letter harbour window garden silver"
WORDS = _TEXT.split()


def made_completions(count: int = 40, systems: tuple[str, ...] = ("mle", "sg")) -> Completions:
    """Prefixes of 20 words and different continuations of each."""
    prefixes = {
        str(i): " ".join(f"{WORDS[(i + j) % 12]}{i if j == 0 else ''}" for j in range(20)) for i in range(count)
    }
    texts = {
        system: {key: f" {WORDS[int(key) % 12]} number {key}, variant {place} goes on." for key in prefixes}
        for place, system in enumerate(systems)
    }
    return Completions(prefixes, texts)


def made_study(**options: Any) -> Study:
    systems = options.pop("systems", ("mle", "sg"))
    options.setdefault("study_id", "test")
    options.setdefault("prefixes", 6)
    return draw_study(made_completions(systems=systems), **options)


def made_folder(folder: Path, study: Study | None = None, **options: Any) -> tuple[Study, dict[str, str]]:
    """A study folder, and the path of every link in it."""
    study = study or made_study(**options)
    write_study(study, folder)
    with (folder / "links.csv").open(newline="") as rows:
        links = {row["who"]: re.sub(r"^https?://[^/]+", "", row["link"]) for row in csv.DictReader(rows)}
    return study, links


def write_jsonl(file: Path, records: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file
