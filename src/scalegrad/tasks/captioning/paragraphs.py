"""Images and their paragraphs, from COCO caption files, with the published splits of Visual Genome checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalegrad.counts import counted
from scalegrad.data.records import Problems

# The published splits of the paragraph corpus (Krause et al. 2017): so many images each.
VISUAL_GENOME_SIZES = {"train": 14_575, "val": 2_487, "test": 2_489}


@dataclass(frozen=True)
class Captioned:
    """An image by its id, the name of its file ("" if it is not told) and a paragraph about it."""

    image_id: str
    file_name: str
    paragraph: str


def read_coco(path: str | Path, problems: Problems | None = None) -> list[Captioned]:
    """The paragraphs of a COCO caption file: `images` (id, file_name) and `annotations` (image_id, caption).

    An image without a paragraph, a paragraph without an image, and an empty one go to `problems`. An image with several
    paragraphs gives several items.
    """
    problems = Problems() if problems is None else problems
    content = _load(Path(path))
    names = {str(image["id"]): str(image.get("file_name", "")) for image in content["images"]}
    found = []
    for annotation in content["annotations"]:
        image_id, paragraph = str(annotation["image_id"]), " ".join(str(annotation["caption"]).split())
        if image_id not in names:
            problems.add("a caption and no image", f"{Path(path).name}, image {image_id}")
        elif not paragraph:
            problems.add("an empty caption", f"{Path(path).name}, image {image_id}")
        else:
            found.append(Captioned(image_id, names[image_id], paragraph))
    told = {item.image_id for item in found}
    for image_id in names:
        if image_id not in told:
            problems.add("no caption", f"{Path(path).name}, image {image_id}")
    return found


def _load(path: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from None
    for part, keys in (("images", ("id",)), ("annotations", ("image_id", "caption"))):
        items = content.get(part) if isinstance(content, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) and item.keys() >= {*keys} for item in items):
            raise ValueError(
                f"{path} is no COCO caption file: its {part!r} must be a list of items with {', '.join(keys)}"
            )
    return content  # type: ignore[no-any-return]


def check_sizes(splits: dict[str, Iterable[Captioned]], expected: dict[str, int] = VISUAL_GENOME_SIZES) -> None:
    """Refuse splits that have not the published number of images, or share one.

    >>> check_sizes({"val": [Captioned("7", "7.jpg", "a dog.")]})
    Traceback (most recent call last):
    ValueError: the val split has 1 image, and the published one 2,487
    """
    ids = {name: {item.image_id for item in items} for name, items in splits.items()}
    for name, there in ids.items():
        if name in expected and len(there) != expected[name]:
            raise ValueError(
                f"the {name} split has {counted(len(there), 'image')}, and the published one {expected[name]:,}"
            )
    check_disjoint(ids)


def check_disjoint(ids: dict[str, set[str]]) -> None:
    """Refuse splits that share an image.

    >>> check_disjoint({"train": {"1", "2"}, "test": {"2"}})
    Traceback (most recent call last):
    ValueError: the train and test splits share 1 image (2)
    """
    names = list(ids)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            if both := ids[first] & ids[second]:
                some = ", ".join(sorted(both)[:3])
                raise ValueError(f"the {first} and {second} splits share {counted(len(both), 'image')} ({some})")


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, for a run's record of what it was trained on."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
