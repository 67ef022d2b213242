"""Captioners side by side: the tables of a captioning experiment, and pictures for its page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scalegrad.decoding import parse
from scalegrad.results.comparison import Comparison, Sample, System, compare
from scalegrad.results.comparison.page import spread_prefixes
from scalegrad.results.comparison.strengths import choose_strengths
from scalegrad.results.frame import load
from scalegrad.tasks.captioning.experiment import BLOCKED, CHOICE, TEST, VALIDATION
from scalegrad.tasks.captioning.scenes import make_scene

if TYPE_CHECKING:
    from scalegrad.runs import Run

NOTE = "Rep-n is on lower-cased words with punctuation."
GRAMMAR = "The row Human is no human text here: a grammar writes the paragraphs about drawn scenes."


def compare_captions(runs: Sequence[Run]) -> Comparison:
    """Tables 4 and 9: CIDEr and Rep-n without and with trigram blocking, beside people; seeds are averaged."""
    data = load([run.path for run in runs])
    data = data[data["corpus"].notna() | (data["metric"] == "validation_ppl")]  # of the training no more than that
    comparison = compare(data, split=TEST, training=True, runs=runs)
    comparison = choose_strengths(comparison, data[data["split"] == VALIDATION], CHOICE)
    systems = [system for system in comparison.systems if not _samples(system)]
    grammar = [GRAMMAR] if runs[0].config["data"]["name"] == "scenes" else []
    return replace(comparison, systems=systems, notes=[NOTE, *grammar, *comparison.notes])


def compare_stochastic(runs: Sequence[Run]) -> Comparison | None:
    """Table 18: sampling from the MLE model against its own greedy search with blocking; None without such rows."""
    comparison = compare(load([run.path for run in runs]), split=TEST, runs=runs)
    systems = [system for system in comparison.systems if system.objective == "mle"]
    sampled = [system for system in systems if _samples(system)]
    blocked = [system for system in systems if system.penalty == BLOCKED.penalty]
    return replace(comparison, systems=[*sampled, *blocked], notes=[]) if sampled else None


def with_pictures(comparison: Comparison, picture: Callable[[str], str]) -> Comparison:
    """With the pictures of the images that a page shows; `picture(name)` gives a data: address, or "" for none."""
    names = spread_prefixes([system for system in comparison.spoken_of if system.samples])
    pictures = {name: picture(name) for name in names}

    def shown(sample: Sample) -> Sample:
        return replace(sample, picture=pictures.get(sample.prefix, ""))

    systems = [replace(system, samples=[shown(one) for one in system.samples]) for system in comparison.systems]
    return replace(comparison, systems=systems)


def scene_picture(name: str) -> str:
    """The picture of a scene ("test-7") as a data: address."""
    split, _, number = name.rpartition("-")
    return picture_address(make_scene(split, int(number)).image)


def picture_address(image: Any, side: int = 384) -> str:
    """An image as a data: address, no larger than `side` pixels; small drawn ones keep every pixel."""
    shown = image.convert("RGB")
    shown.thumbnail((side, side))
    kind = "png" if max(shown.size) <= 128 else "jpeg"
    held = io.BytesIO()
    shown.save(held, kind)
    return f"data:image/{kind};base64,{base64.b64encode(held.getvalue()).decode()}"


def _samples(system: System) -> bool:
    return system.decoding is not None and parse(system.decoding).samples
