"""What a saved model's card says of its training objective."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalegrad.runs import write_text

_BEGIN, _END = "<!-- scalegrad -->", "<!-- /scalegrad -->"
_FRONT = "---\nlibrary_name: transformers\ntags:\n- scalegrad\n---\n\n"
_NAMES = {"mle": "maximum likelihood", "ul": "token-level unlikelihood", "sg": "ScaleGrad"}


def section(record: Mapping[str, Any]) -> str:
    """A model card's section from `objective.record`.

    >>> print(section({"objective": "sg", "gamma": 0.2, "discourage": "Seen()", "options": {}}))
    <!-- scalegrad -->
    ## Training objective
    <BLANKLINE>
    Trained with ScaleGrad by scalegrad.
    <BLANKLINE>
    | | |
    |---|---|
    | gamma | 0.2 |
    | discourage | `Seen()` |
    <!-- /scalegrad -->
    """
    shown = {name: value for name, value in record.items() if name not in ("objective", "options")}
    shown.update(record.get("options", {}))
    rows = [f"| {name} | {f'`{value}`' if isinstance(value, str) else value} |" for name, value in shown.items()]
    name = _NAMES.get(record["objective"], record["objective"])
    intro = ["## Training objective", "", f"Trained with {name} by scalegrad.", "", "| | |", "|---|---|"]
    return "\n".join([_BEGIN, *intro, *rows, _END])


def write_card(folder: Path, record: Mapping[str, Any]) -> None:
    """Put the section into `folder/README.md`, in place of an earlier one; the rest of a card stays."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else _FRONT
    text = re.sub(f"{_BEGIN}.*?{_END}\n?", "", text, flags=re.DOTALL).rstrip("\n")
    write_text(path, f"{text}\n\n{section(record)}\n")


class Saver:
    """Stands in `model.save_pretrained` while an objective is attached: saves as always, then adds to the card."""

    def __init__(self, model: Any, attachment: Any) -> None:
        self.model = model
        self.attachment = attachment

    def __call__(self, save_directory: Any, *args: Any, **kwargs: Any) -> Any:
        save = type(self.model).save_pretrained
        saved = save(self.model, save_directory, *args, **kwargs)
        named = inspect.signature(save).bind(self.model, save_directory, *args, **kwargs).arguments
        if named.get("is_main_process", True) and not self.attachment.detached:
            write_card(Path(save_directory), self.attachment.model.config.scalegrad)
        return saved
