"""Scenes as pixels: every kind of thing is a few flat shapes in a unit box."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Literal

from scalegrad.extras import need
from scalegrad.tasks.captioning.scenes.world import COLOURS, GROUNDS, HORIZON, SIZES, SKIES, Thing, World

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 96  # of an image, in pixels

Shape = tuple[Literal["ellipse", "rectangle", "polygon"], str, tuple[float, ...]]
RGB = tuple[int, int, int]

_SKIN, _DARK, _GLASS = (235, 190, 150), (45, 45, 50), (190, 225, 245)

# (form, colour, coordinates from 0 to 1 in the thing's box), painted in this order. "own" and "part" are the thing's.
SHAPES: dict[str, tuple[Shape, ...]] = {
    "tree": (("rectangle", "part", (0.4, 0.5, 0.6, 1)), ("ellipse", "own", (0, 0, 1, 0.7))),
    "house": (
        ("rectangle", "own", (0.1, 0.4, 0.9, 1)),
        ("polygon", "part", (0, 0.45, 0.5, 0, 1, 0.45)),
        ("rectangle", "glass", (0.2, 0.55, 0.4, 0.75)),
        ("rectangle", "dark", (0.58, 0.6, 0.78, 1)),
    ),
    "car": (
        ("polygon", "own", (0, 0.75, 0, 0.5, 0.2, 0.45, 0.35, 0.25, 0.75, 0.25, 0.9, 0.48, 1, 0.5, 1, 0.75)),
        ("rectangle", "part", (0, 0.55, 1, 0.65)),
        ("ellipse", "dark", (0.12, 0.65, 0.36, 0.9)),
        ("ellipse", "dark", (0.64, 0.65, 0.88, 0.9)),
    ),
    "bus": (
        ("rectangle", "own", (0, 0.1, 1, 0.8)),
        ("rectangle", "glass", (0.05, 0.2, 0.7, 0.42)),
        ("rectangle", "part", (0.76, 0.2, 0.94, 0.8)),
        ("ellipse", "dark", (0.1, 0.7, 0.32, 0.95)),
        ("ellipse", "dark", (0.6, 0.7, 0.82, 0.95)),
    ),
    "dog": (
        ("ellipse", "own", (0.1, 0.4, 0.8, 0.75)),
        ("rectangle", "own", (0.18, 0.6, 0.28, 1)),
        ("rectangle", "own", (0.6, 0.6, 0.7, 1)),
        ("ellipse", "own", (0.62, 0.15, 1, 0.48)),
        ("polygon", "own", (0.02, 0.2, 0.12, 0.2, 0.22, 0.5, 0.12, 0.5)),
        ("rectangle", "part", (0.62, 0.42, 0.86, 0.53)),
    ),
    "cat": (
        ("ellipse", "own", (0.25, 0.4, 0.85, 1)),
        ("ellipse", "own", (0.5, 0.12, 0.95, 0.55)),
        ("polygon", "own", (0.52, 0.25, 0.56, 0, 0.7, 0.18)),
        ("polygon", "own", (0.75, 0.18, 0.9, 0, 0.94, 0.25)),
        ("polygon", "part", (0, 0.35, 0.12, 0.35, 0.38, 0.9, 0.26, 0.98)),
    ),
    "horse": (
        ("rectangle", "own", (0.12, 0.4, 0.75, 0.68)),
        ("rectangle", "own", (0.14, 0.6, 0.24, 1)),
        ("rectangle", "own", (0.62, 0.6, 0.72, 1)),
        ("polygon", "own", (0.6, 0.5, 0.75, 0, 1, 0.2, 0.95, 0.3, 0.82, 0.25, 0.75, 0.6)),
        ("polygon", "dark", (0.12, 0.4, 0, 0.75, 0.08, 0.8, 0.18, 0.5)),
        ("rectangle", "part", (0.32, 0.34, 0.55, 0.52)),
    ),
    "man": (
        ("rectangle", "dark", (0.34, 0.62, 0.47, 1)),
        ("rectangle", "dark", (0.53, 0.62, 0.66, 1)),
        ("rectangle", "own", (0.28, 0.3, 0.72, 0.68)),
        ("ellipse", "skin", (0.36, 0.06, 0.64, 0.34)),
        ("rectangle", "part", (0.3, 0, 0.7, 0.13)),
    ),
    "woman": (
        ("polygon", "own", (0.42, 0.3, 0.58, 0.3, 0.82, 0.85, 0.18, 0.85)),
        ("rectangle", "skin", (0.38, 0.85, 0.46, 1)),
        ("rectangle", "skin", (0.54, 0.85, 0.62, 1)),
        ("ellipse", "dark", (0.3, 0, 0.7, 0.4)),
        ("ellipse", "skin", (0.38, 0.06, 0.62, 0.32)),
        ("rectangle", "part", (0.74, 0.45, 1, 0.68)),
    ),
    "bench": (
        ("rectangle", "own", (0, 0.3, 1, 0.45)),
        ("rectangle", "own", (0, 0.55, 1, 0.68)),
        ("rectangle", "part", (0.08, 0.68, 0.2, 1)),
        ("rectangle", "part", (0.8, 0.68, 0.92, 1)),
    ),
    "boat": (
        ("polygon", "own", (0, 0.68, 1, 0.68, 0.82, 1, 0.18, 1)),
        ("rectangle", "dark", (0.47, 0, 0.52, 0.68)),
        ("polygon", "part", (0.52, 0.02, 0.95, 0.6, 0.52, 0.6)),
    ),
    "umbrella": (
        ("rectangle", "part", (0.46, 0.4, 0.55, 1)),
        ("polygon", "own", (0, 0.5, 0.2, 0.15, 0.5, 0, 0.8, 0.15, 1, 0.5)),
    ),
    "sign": (
        ("rectangle", "part", (0.44, 0.4, 0.56, 1)),
        ("polygon", "own", (0.5, 0, 0.95, 0.28, 0.5, 0.56, 0.05, 0.28)),
    ),
    "flower": (
        ("rectangle", "part", (0.45, 0.45, 0.55, 1)),
        ("ellipse", "own", (0.1, 0.12, 0.5, 0.45)),
        ("ellipse", "own", (0.5, 0.12, 0.9, 0.45)),
        ("ellipse", "own", (0.3, 0, 0.7, 0.3)),
        ("ellipse", "own", (0.3, 0.28, 0.7, 0.6)),
        ("ellipse", "dark", (0.4, 0.2, 0.6, 0.4)),
    ),
    "ball": (("ellipse", "own", (0.1, 0.1, 0.9, 0.9)), ("rectangle", "part", (0.12, 0.42, 0.88, 0.58))),
    "bird": (
        ("ellipse", "own", (0.2, 0.4, 0.85, 0.7)),
        ("polygon", "own", (0.8, 0.45, 1, 0.52, 0.8, 0.6)),
        ("polygon", "part", (0.35, 0.5, 0.3, 0.05, 0.65, 0.5)),
        ("polygon", "own", (0.25, 0.5, 0, 0.4, 0.05, 0.65)),
    ),
    "kite": (
        ("polygon", "own", (0.5, 0, 0.9, 0.35, 0.5, 0.75, 0.1, 0.35)),
        ("polygon", "part", (0.46, 0.7, 0.58, 0.7, 0.75, 1, 0.6, 1)),
    ),
    "balloon": (("ellipse", "own", (0.12, 0, 0.88, 0.72)), ("rectangle", "part", (0.36, 0.8, 0.64, 1))),
    "plane": (
        ("ellipse", "own", (0, 0.4, 1, 0.62)),
        ("polygon", "own", (0.02, 0.1, 0.16, 0.1, 0.25, 0.5, 0.08, 0.5)),
        ("polygon", "part", (0.4, 0.52, 0.62, 0.52, 0.38, 0.95, 0.28, 0.95)),
    ),
    "cloud": (
        ("ellipse", "own", (0, 0.4, 0.5, 0.8)),
        ("ellipse", "own", (0.25, 0.2, 0.75, 0.75)),
        ("ellipse", "own", (0.5, 0.38, 1, 0.8)),
    ),
}


def draw(world: World, random: Random) -> Image:
    """The scene as an RGB image of 96 × 96 pixels; `random` gives the ground its texture and the light its strength."""
    image = need("PIL.Image", extra="caption").new("RGB", (SIDE, SIDE), SKIES[world.sky])
    brush = need("PIL.ImageDraw", extra="caption").Draw(image)
    base, tone = GROUNDS[world.ground]
    brush.rectangle((0, int(HORIZON * SIDE), SIDE, SIDE), fill=base)
    for _ in range(30):
        x, y = random.uniform(0, SIDE), random.uniform(HORIZON * SIDE + 1, SIDE)
        brush.line((x, y, x + random.uniform(2, 9), y), fill=tone)
    for thing in sorted(world.things, key=lambda thing: thing.y):  # what is nearer is lower, and covers what is behind
        _paint(brush, thing)
    light = random.uniform(0.85, 1.1)
    shaded: Image = image.point(lambda value: int(min(255, value * light)))
    return shaded


def _paint(brush: Any, thing: Thing) -> None:
    width = SIZES[thing.size] * SIDE
    left, top = thing.x * SIDE - width / 2, thing.y * SIDE - width / 2
    colours: dict[str, RGB] = {"skin": _SKIN, "dark": _DARK, "glass": _GLASS, "own": COLOURS[thing.colour]}
    if thing.part_colour:
        colours["part"] = COLOURS[thing.part_colour]
    for form, colour, places in SHAPES[thing.kind]:
        points = [(left + x * width, top + y * width) for x, y in zip(places[::2], places[1::2], strict=True)]
        getattr(brush, form)(points, fill=colours[colour])
