"""What a scene may hold: grounds, skies, kinds of things, their colours, sizes and places."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

# What is drawn for each colour word.
COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (205, 38, 38),
    "orange": (240, 140, 30),
    "yellow": (245, 220, 60),
    "green": (30, 120, 50),
    "blue": (35, 70, 200),
    "purple": (130, 50, 160),
    "pink": (245, 150, 185),
    "brown": (115, 70, 35),
    "black": (20, 20, 20),
    "white": (250, 250, 250),
    "gray": (125, 125, 130),
}
PAINTED = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "black", "white", "gray")
FUR = ("brown", "black", "white", "gray", "orange")
_WINGS, _TAILS = ("gray", "yellow", "white", "black"), ("red", "yellow", "white", "black")
_BASKETS = ("brown", "black", "white")

# The ground's word and its two colours (a second tone gives it texture), and the sky's.
GROUNDS: dict[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "grass": ((110, 190, 90), (90, 165, 75)),
    "sand": ((225, 200, 140), (205, 180, 120)),
    "snow": ((235, 240, 245), (215, 222, 232)),
    "road": ((150, 150, 150), (220, 220, 200)),
}
SKIES: dict[str, tuple[int, int, int]] = {
    "blue": (150, 205, 250),
    "gray": (185, 190, 195),
    "orange": (250, 195, 140),
    "dark": (40, 45, 80),
}


@dataclass(frozen=True)
class Kind:
    """A kind of thing: the colours it comes in, its part with a colour of its own ("" for none), where it may be."""

    colours: tuple[str, ...]
    part: str = ""
    part_colours: tuple[str, ...] = ()
    in_sky: bool = False


KINDS: dict[str, Kind] = {
    "tree": Kind(("green", "orange", "yellow", "pink"), "trunk", ("brown", "black", "white")),
    "house": Kind(PAINTED, "roof", ("red", "brown", "black", "gray", "blue")),
    "car": Kind(PAINTED, "stripe", ("white", "black", "yellow", "red")),
    "bus": Kind(("red", "yellow", "green", "blue", "white", "orange"), "door", ("black", "white", "gray", "purple")),
    "dog": Kind(FUR, "collar", ("red", "blue", "green", "pink", "yellow")),
    "cat": Kind(FUR, "tail", ("black", "white", "orange", "brown")),
    "horse": Kind(FUR, "saddle", ("red", "blue", "purple", "yellow", "green")),
    "man": Kind(PAINTED, "hat", ("red", "black", "white", "blue", "yellow", "green")),
    "woman": Kind(PAINTED, "bag", ("red", "black", "white", "brown", "yellow", "green")),
    "bench": Kind(("brown", "green", "red", "white", "black"), "leg", ("black", "gray", "white")),
    "boat": Kind(("red", "white", "blue", "brown", "green"), "sail", ("white", "yellow", "orange", "red", "blue")),
    "umbrella": Kind(PAINTED, "handle", ("black", "brown", "white")),
    "sign": Kind(("red", "yellow", "green", "blue", "white"), "pole", ("gray", "black", "brown")),
    "flower": Kind(("red", "yellow", "pink", "purple", "white", "blue"), "stem", ("green", "brown")),
    "ball": Kind(PAINTED, "stripe", ("white", "black", "red", "blue", "yellow")),
    "bird": Kind(
        ("black", "white", "red", "blue", "brown", "gray"), "wing", ("gray", "yellow", "white", "black"), True
    ),
    "kite": Kind(
        ("red", "yellow", "green", "purple", "pink", "blue"), "tail", ("red", "yellow", "white", "black"), True
    ),
    "balloon": Kind(
        ("red", "yellow", "orange", "purple", "green", "pink"), "basket", ("brown", "black", "white"), True
    ),
    "plane": Kind(("white", "gray", "red", "yellow"), "wing", ("red", "blue", "black", "white"), True),
    "cloud": Kind(("white", "gray", "pink"), in_sky=True),
}
SKY_KINDS = tuple(name for name, kind in KINDS.items() if kind.in_sky)
GROUND_KINDS = tuple(name for name, kind in KINDS.items() if not kind.in_sky)

SIZES: dict[str, float] = {"small": 0.13, "medium": 0.20, "large": 0.30}  # width over the image's width
HORIZON = 0.42  # where the ground begins, from the top
CLOSEST = 0.15  # between two centres


@dataclass(frozen=True)
class Thing:
    """One thing of a scene: its kind, colours, size, and the centre of its box, from 0 to 1 right and down."""

    kind: str
    colour: str
    part_colour: str
    size: str
    x: float
    y: float

    @property
    def part(self) -> str:
        """The name of its part, or nothing."""
        return KINDS[self.kind].part

    @property
    def in_sky(self) -> bool:
        """Whether it flies."""
        return KINDS[self.kind].in_sky

    @property
    def side(self) -> str:
        """left, middle or right of the picture."""
        return "left" if self.x < 0.36 else "right" if self.x > 0.64 else "middle"


@dataclass(frozen=True)
class World:
    """All that is in a picture: what the ground is, how the sky looks, and the things, largest first."""

    ground: str
    sky: str
    things: tuple[Thing, ...]


def make_world(random: Random) -> World:
    """A scene of three to seven things, drawn by `random`."""
    things: list[Thing] = []
    wanted = random.choice((3, 4, 4, 5, 5, 6))
    flying = random.choice((0, 1, 1, 2)) if wanted > 3 else random.choice((0, 1))
    for number in range(wanted):
        before = [thing.kind for thing in things if thing.in_sky == (number < flying)]
        kinds = SKY_KINDS if number < flying else GROUND_KINDS
        kind = random.choice(before) if before and random.random() < 0.2 else random.choice(kinds)
        if (thing := _placed(kind, things, random)) is not None:
            things.append(thing)
    things.sort(key=lambda thing: (-SIZES[thing.size], thing.x))
    return World(random.choice(list(GROUNDS)), random.choice(list(SKIES)), tuple(things))


def _placed(kind: str, others: list[Thing], random: Random) -> Thing | None:
    """A thing of this kind where there is room for it; None if twenty tries find none."""
    about = KINDS[kind]
    size = random.choice(tuple(SIZES))
    colour = random.choice(about.colours)
    parts = [name for name in about.part_colours if name != colour]
    part_colour = random.choice(parts) if parts else ""
    half = SIZES[size] / 2
    for _ in range(20):
        x = random.uniform(half, 1 - half)
        y = random.uniform(half, HORIZON - 0.08) if about.in_sky else random.uniform(HORIZON + 0.06, 1 - half)
        room = all(max(abs(x - thing.x), abs(y - thing.y)) > (half + SIZES[thing.size] / 2) * 0.8 for thing in others)
        if room and all((x - thing.x) ** 2 + (y - thing.y) ** 2 > CLOSEST**2 for thing in others):
            return Thing(kind, colour, part_colour, size, round(x, 3), round(y, 3))
    return None
