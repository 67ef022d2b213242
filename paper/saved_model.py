"""Models in folders that are whole or not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from scalegrad.decoding import load
from scalegrad.runs import write_json


def save_whole(folder: Path, *parts: Any, **records: Any) -> None:
    """What `parts` save and `records` as JSON into `folder`, all of it or nothing: a kill leaves no half of a model."""
    folder = folder.resolve()
    aside = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(aside, ignore_errors=True)
    for part in parts:
        part.save_pretrained(aside)
    for name, record in records.items():
        write_json(aside / f"{name}.json", record)
    if not folder.exists():
        os.replace(aside, folder)
        return
    for path in sorted(aside.iterdir(), key=lambda path: path.name == "config.json"):  # the mark of a model last
        os.replace(path, folder / path.name)
    aside.rmdir()


def unpack(file: str, folder: Path) -> None:
    """A GGUF file's model as a folder, once: to read the file takes longer than many a run."""
    if not (folder / "config.json").is_file():
        save_whole(folder, *load(file, "cpu", "float32"))
