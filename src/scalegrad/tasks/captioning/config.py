"""What can be chosen of captioning; reading it loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from scalegrad.objectives import Objective, parse
from scalegrad.options import several

PAPER_OBJECTIVES = (Objective("mle"), Objective("ul", 0.5), Objective("sg", 0.5))


@dataclass(frozen=True, kw_only=True)
class Seeing:
    """Where the captioner's regions come from: features that are there, or images to extract them from."""

    features: Path | None = None
    """Region features: a folder of .npy or .npz, or one file for all."""
    images: Path | None = None
    """Folder of images named by id, to extract features from."""

    def __post_init__(self) -> None:
        for name in ("features", "images"):
            path = getattr(self, name)
            if path is not None and not path.exists():
                raise FileNotFoundError(f"{name}: there is no file or folder {path}")

    def check(self) -> None:
        """Refuse both, and neither."""
        if (self.features is None) == (self.images is None):
            raise ValueError("give --features PATH or --images FOLDER: a captioner sees images through region features")


@dataclass(frozen=True, kw_only=True)
class Captioning:
    """What to train a captioner on, and how often. Without files: drawn scenes that come with the package."""

    objective: Annotated[tuple[Objective, ...], several(parse)] = PAPER_OBJECTIVES
    """mle, ul=α or sg=γ. May be repeated."""
    scale: str = "small"
    """Drawn scenes: small (minutes on a CPU) or large (a GPU)."""
    seeds: int = 1
    """Train each objective this many times, with other seeds."""
    train: Path | None = None
    """COCO captions to train on, not scenes."""
    valid: Path | None = None
    """COCO captions for validation."""
    test: Path | None = None
    """COCO captions for the figures."""
    extractor: str = "scenes"
    """With --images: a DETR-like detector or vision backbone, hub name or folder."""
    epochs: int | None = None
    """Passes over the training paragraphs (default: the recipe's)."""
    parallel: int = 0
    """Drawn scenes: trainings at a time, each a process (0: all on a CPU, one on a GPU)."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, not {self.seeds}")
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, not {self.epochs}")
        if self.scale not in ("small", "large"):
            raise ValueError(f"scale must be one of small, large, not {self.scale!r}")
        if 0 < len(self.files()) < 3:
            raise ValueError("--train, --valid and --test belong together: give all three, or none for drawn scenes")
        for name, path in self.files().items():
            if not path.exists():
                raise FileNotFoundError(f"{name}: there is no file {path}")

    def files(self) -> dict[str, Path]:
        """The files by split; none for drawn scenes."""
        paths = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: path for name, path in paths.items() if path is not None}
