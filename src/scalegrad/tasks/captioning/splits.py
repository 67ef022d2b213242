"""What a captioner is trained and scored on: drawn scenes, or the user's own paragraphs and region features.

`Scenes` and `Files` say what it is, in a few values that can be sent to another process; `load_splits` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from scalegrad.data.records import Problems
from scalegrad.runs.progress import Progress, bind
from scalegrad.tasks.captioning.dataset import Example, examples_of
from scalegrad.tasks.captioning.extraction import SCENES, extract, features_of, load_extractor
from scalegrad.tasks.captioning.features import open_features
from scalegrad.tasks.captioning.paragraphs import check_disjoint, check_sizes, file_hash, read_coco
from scalegrad.tasks.captioning.scenes import make_scenes

NAMES = ("train", "valid", "test")


@dataclass(frozen=True)
class Splits:
    """Examples for training, validation and test; `regions_from` names what made their features ("": unknown)."""

    train: Sequence[Example]
    valid: Sequence[Example]
    test: Sequence[Example]
    regions_from: str = ""


@dataclass(frozen=True)
class Scenes:
    """So many drawn scenes of each split, seen by the detector that comes with the package."""

    train: int
    valid: int
    test: int

    def about(self) -> dict[str, Any]:
        """What a run's config says of them."""
        return {"name": "scenes", "train": self.train, "valid": self.valid, "test": self.test}

    def load(self, progress: Progress | None = None, problems: Problems | None = None) -> Splits:
        """Draw them."""
        examples = {name: scene_examples(name, getattr(self, name), progress) for name in NAMES}
        return Splits(**examples, regions_from=SCENES)


@dataclass(frozen=True)
class Files:
    """COCO caption files, and the region features of their images: `features`, or made from `images` by `extractor`.

    Features of images are kept in the folder `kept_in`. Splits must not share an image; with `published` they must have
    as many as those of Visual Genome. With `skip_bad` items that cannot be read are left out.
    """

    train: Path
    valid: Path
    test: Path
    features: Path | None = None
    images: Path | None = None
    extractor: str = SCENES
    kept_in: Path | None = None
    published: bool = False
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if (self.features is None) == (self.images is None):
            raise ValueError("give --features PATH or --images FOLDER: a captioner sees images through region features")

    def about(self) -> dict[str, Any]:
        """What a run's config says of them."""
        hashes = {name: file_hash(getattr(self, name)) for name in NAMES}
        regions = f"{self.images} by {self.extractor}" if self.images else str(self.features)
        return {"name": self.test.name, **hashes, "regions": regions}

    def load(self, progress: Progress | None = None, problems: Problems | None = None) -> Splits:
        """Read them; what is left out is added to `problems`."""
        problems = Problems(self.skip_bad) if problems is None else problems
        items = {name: read_coco(getattr(self, name), problems) for name in NAMES}
        if self.published:
            check_sizes({"train": items["train"], "val": items["valid"], "test": items["test"]})
        else:
            check_disjoint({name: {item.image_id for item in own} for name, own in items.items()})
        if self.images:
            features = features_of(self.images, self.extractor, self.kept_in, problems, progress)
        else:
            features = open_features(self.features or "")
        examples = {name: examples_of(own, features, problems) for name, own in items.items()}
        return Splits(**examples, regions_from=self.extractor if self.images else "")


Source = Scenes | Files

_loaded: dict[Source, Splits] = {}  # the last one read in this process


def load_splits(source: Source, progress: Progress | None = None, problems: Problems | None = None) -> Splits:
    """The examples of `source`. Jobs of one process that have the same source read it once."""
    if source not in _loaded:
        _loaded.clear()
        _loaded[source] = source.load(progress, problems)
    return _loaded[source]


def forget_splits() -> None:
    """Let go of what `load_splits` read: files may change."""
    _loaded.clear()


def scene_examples(split: str, count: int, progress: Progress | None = None) -> list[Example]:
    """The first `count` drawn scenes of a split."""
    regions = scene_regions(split, count, progress)
    return [Example(scene.name, regions[scene.name], scene.paragraph) for scene in make_scenes(split, count)]


def scene_regions(split: str, count: int, progress: Progress | None = None) -> dict[str, Tensor]:
    """The region features of the first `count` drawn scenes of a split, by name."""
    images = {scene.name: scene.image for scene in make_scenes(split, count)}
    return extract(images, load_extractor(SCENES), progress=bind(progress, f"drawing {split} scenes"))
