"""A scene: its image and its paragraph, both from one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from scalegrad.tasks.captioning.scenes.drawing import draw
from scalegrad.tasks.captioning.scenes.paragraphs import write_paragraph
from scalegrad.tasks.captioning.scenes.world import World, make_world

if TYPE_CHECKING:
    from PIL.Image import Image

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Scene:
    """A scene by name ("valid-7"): what is in it, a paragraph about it, and its picture, drawn when asked for."""

    name: str
    seed: int
    world: World
    paragraph: str

    @cached_property
    def image(self) -> Image:
        """The picture, 96 × 96 pixels."""
        return draw(self.world, Random(f"{self.name}/{self.seed}/picture"))


def make_scene(split: str, number: int, seed: int = 0) -> Scene:
    """Scene `number` of a split; the same three always give the same scene, and splits share no random numbers."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    name = f"{split}-{number}"
    world = make_world(Random(f"{name}/{seed}/world"))
    return Scene(name, seed, world, write_paragraph(world, Random(f"{name}/{seed}/words")))


def make_scenes(split: str, count: int, seed: int = 0) -> Iterator[Scene]:
    """The first `count` scenes of a split."""
    return (make_scene(split, number, seed) for number in range(count))
