"""Paragraphs about a scene: sentences from templates with synonyms and optional detail, in a loosely planned order.

A template's `[a|b|]` is one of its alternatives, the empty one leaving a detail out; `{noun}` is filled in. As people
do, a writer stays with a thing for a sentence or two, comes back to it later, and seldom says the same of it twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from scalegrad.tasks.captioning.scenes.world import Thing, World

WORDS_MEAN, WORDS_SPREAD, WORDS_LEAST, WORDS_MOST = 60, 12, 35, 100

NOUNS: dict[str, tuple[str, ...]] = {
    "house": ("house", "house", "home", "building"),
    "car": ("car", "car", "vehicle"),
    "dog": ("dog", "dog", "puppy"),
    "cat": ("cat", "cat", "kitten"),
    "horse": ("horse", "horse", "pony"),
    "man": ("man", "man", "guy"),
    "woman": ("woman", "woman", "lady"),
    "boat": ("boat", "boat", "sailboat"),
    "sign": ("sign", "street sign"),
    "plane": ("plane", "airplane"),
    "balloon": ("balloon", "hot air balloon"),
    "umbrella": ("umbrella", "parasol"),
}
PRONOUNS = {"man": "he", "woman": "she"}
CLOTHES = {"man": "[shirt|jacket]", "woman": "[dress|skirt]"}  # what a person's own colour is the colour of
PLURALS = {"leg": "legs", "wing": "wings"}
COUNTS = {2: "two", 3: "three", 4: "four"}
MANY = {"bus": "buses", "bench": "benches", "man": "men", "woman": "women"}

DOING: dict[str, str] = {
    "dog": "[standing|sitting|walking|running]",
    "cat": "[sitting|resting|lying]",
    "horse": "[standing|walking|grazing]",
    "man": "[standing|walking|waiting|posing]",
    "woman": "[standing|walking|waiting|smiling]",
    "car": "parked",
    "bus": "[parked|stopped]",
    "bird": "[flying|gliding]",
    "kite": "[flying|floating|soaring]",
    "balloon": "[floating|drifting]",
    "plane": "[flying|passing]",
    "cloud": "[floating|hanging|drifting]",
    "ball": "[lying|resting]",
    "flower": "[growing|blooming]",
    "tree": "[standing|growing]",
}
SIZE_WORDS = {"small": "[small|little|tiny]", "medium": "medium sized", "large": "[large|big|huge]"}

PLACES: dict[str, tuple[str, str]] = {  # as in "a beach", "on the sand"
    "grass": ("[a field|a meadow|a grassy park]", "[on the grass|in the grass|in the field|on the lawn]"),
    "sand": ("[a beach|a sandy shore]", "[on the sand|on the beach|at the shore]"),
    "snow": ("[a snowy field|a winter day]", "[in the snow|on the snow|on the white ground]"),
    "road": ("[a street|a city road]", "[on the road|on the street|on the pavement]"),
}
GROUND_SENTENCES: dict[str, tuple[str, ...]] = {
    "grass": ("the grass [is|looks] green[ and short| and thick|]", "[the ground|everything] is covered with grass"),
    "sand": ("the sand is [light brown|tan|soft]", "[there is sand all around|sand covers everything]"),
    "snow": ("[bright |]white snow covers the [ground|land]", "everything [looks|is] cold and [white|frozen]"),
    "road": ("[white|painted] lines run along the [road|street]", "the pavement is [gray|smooth|clean and gray]"),
}
SKY_SENTENCES: dict[str, tuple[str, ...]] = {
    "blue": ("the sky is [blue|clear|bright blue|blue and clear]", "it is a [bright |warm |]sunny day"),
    "gray": ("the sky [is|looks] [gray|overcast]", "it is a [gloomy|dull|rainy] day"),
    "orange": ("the sky has turned orange", "the sun is [setting|going down]"),
    "dark": ("[the sky is dark|it is dark outside]", "this was taken at night"),
}
OPENINGS = (
    "this is [a picture|an image|a photo] of {scenery}",
    "[the picture|this photo] shows {a_thing} {ground}",
    "{a_thing} is {doing} {ground}",
    "several things can be seen {ground}",
)
SENTENCES: dict[str, tuple[str, ...]] = {
    "presence": (
        "there is {a_thing} {where}[ {relation} {other}|]",
        "{a_thing} is {doing} {where}[ {side}|]",
        "{side}[ there is| we see|, you can see] {a_thing}[ {relation} {other}|]",
        "{a_thing} [is|can be seen|appears] {side}[ {relation} {other}|]",
    ),
    "colour": ("{subject} is {colour}[ and {size}|]",),
    "clothes": ("{subject} is [wearing|dressed in] a {colour} {clothes}",),
    "size": ("{subject} [is|looks] [very |rather |quite |]{size}",),
    "part": ("{subject} has {a_part}", "the {part} [on|of] the {noun} {are} {part_colour}"),
    "doing": ("{subject} is {doing} {where}[ {relation} {other}|]",),
    "relation": ("{subject} is {relation} {other}", "{relation} the {noun} [is|there is|stands] {other}"),
}
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def write_paragraph(world: World, random: Random) -> str:
    """A paragraph of about sixty words about the scene, lower-cased, each sentence ending in a full stop."""
    return _Writer(world, random).paragraph()


@dataclass
class _Writer:
    world: World
    random: Random
    said: dict[Thing, list[str]] = field(default_factory=dict)  # what was told of each thing
    last: Thing | None = None  # what the last sentence was about

    def paragraph(self) -> str:
        target = min(max(self.random.gauss(WORDS_MEAN, WORDS_SPREAD), WORDS_LEAST), WORDS_MOST)
        sentences = [self._opening()]
        backdrops = [GROUND_SENTENCES[self.world.ground], SKY_SENTENCES[self.world.sky]]
        while sum(len(sentence.split()) + 1 for sentence in sentences) < target:
            if backdrops and self.random.random() < 0.18:
                self.last = None
                sentences.append(self._expand(self.random.choice(backdrops.pop(self.random.randrange(len(backdrops))))))
                continue
            thing = self._next_thing()
            sentences += [self._about(thing) for _ in range(self.random.choice((1, 1, 2)))]
        return " ".join(f"{sentence}." for sentence in sentences)

    def _opening(self) -> str:
        standing = [thing for thing in self.world.things if not thing.in_sky]
        template = self.random.choice(OPENINGS)
        if "{a_thing}" not in template or not standing:
            return self._expand(OPENINGS[0] if "{a_thing}" in template else template)
        thing = self.random.choice(standing[:2])
        self.said.setdefault(thing, []).append("presence")
        self.last = thing
        return self._expand(template, thing)

    def _next_thing(self) -> Thing:
        """Mostly one that was not told of yet."""
        things = self.world.things
        return self.random.choices(things, [1 if thing in self.said else 8 for thing in things])[0]

    def _about(self, thing: Thing) -> str:
        told = self.said.setdefault(thing, [])
        aspect = "presence"
        if told:
            aspects = ["clothes" if thing.kind in CLOTHES else "colour", "size", "doing"]
            aspects += ["part"] * 2 * bool(thing.part) + ["relation"] * 2 * (len(self.world.things) > 1)
            fresh = [aspect for aspect in aspects if aspect not in told]
            aspect = self.random.choice(fresh if fresh and self.random.random() < 0.95 else aspects)
        told.append(aspect)
        sentence = self._expand(self.random.choice(SENTENCES[aspect]), thing)
        self.last = thing
        return sentence

    def _expand(self, template: str, thing: Thing | None = None) -> str:
        """A sentence from its template: slots filled, then every choice made."""
        slots = {"scenery": PLACES[self.world.ground][0], "ground": PLACES[self.world.ground][1]}
        if thing is not None:
            slots |= self._slots(thing, slots["ground"])
        text = template.format_map(slots)
        while (choice := _CHOICE.search(text)) is not None:
            text = text[: choice.start()] + self.random.choice(choice[1].split("|")) + text[choice.end() :]
        return with_articles(text)

    def _slots(self, thing: Thing, ground: str) -> dict[str, str]:
        noun = nouns(thing.kind)
        picture = "of the [picture|image|photo|scene]"
        side = f"in the [middle|center] {picture}" if thing.side == "middle" else f"[on|to] the {thing.side}"
        clear = thing == self.last and self.random.random() < 0.3  # a pronoun only where it is clear what it means
        part = PLURALS.get(thing.part, thing.part)
        a_part = f"{'' if part != thing.part else 'a '}{thing.part_colour} {part}"
        return {
            "noun": noun,
            "subject": PRONOUNS.get(thing.kind, "it") if clear else f"the {noun}",
            "a_thing": with_colour(thing, f"[{SIZE_WORDS[thing.size]} |||]")
            + (f"[ with {a_part}|||]" if thing.part else ""),
            "colour": thing.colour,
            "clothes": CLOTHES.get(thing.kind, ""),
            "size": SIZE_WORDS[thing.size],
            "part": part,
            "part_colour": thing.part_colour,
            "a_part": a_part,
            "are": "is" if part == thing.part else "are",
            "doing": DOING.get(thing.kind, "standing"),
            "where": "[in the sky|up in the air]" if thing.in_sky else ground,
            "side": side,
            **self._neighbour(thing),
        }

    def _neighbour(self, thing: Thing) -> dict[str, str]:
        """How it stands to the thing nearest to it, or to some other one."""
        others = [other for other in self.world.things if other != thing]
        if not others:
            return {"relation": "far from", "other": "everything else"}
        nearest = min(others, key=lambda other: (other.x - thing.x) ** 2 + (other.y - thing.y) ** 2)
        other = nearest if self.random.random() < 0.7 else self.random.choice(others)
        across, down = thing.x - other.x, thing.y - other.y
        if abs(across) > abs(down):
            relation = f"to the {'right' if across > 0 else 'left'} of"
        elif thing.in_sky != other.in_sky:
            relation = "above" if thing.in_sky else "below"
        else:
            relation = "in front of" if down > 0 else "behind"
        if across**2 + down**2 < 0.09:
            relation = f"[{relation}|next to|beside|near|close to]"
        return {"relation": relation, "other": f"[the {nouns(other.kind)}|{with_colour(other, '')}]"}


def nouns(kind: str) -> str:
    """The words for a kind of thing, as a choice.

    >>> nouns("dog"), nouns("tree")
    ('[dog|dog|puppy]', 'tree')
    """
    words = NOUNS.get(kind, (kind,))
    return f"[{'|'.join(words)}]" if len(words) > 1 else words[0]


def with_colour(thing: Thing, size: str) -> str:
    """A thing with its colour, which is that of the clothes for a person.

    >>> with_colour(Thing("dog", "brown", "red", "large", 0.5, 0.8), "big ")
    'a big brown [dog|dog|puppy]'
    """
    if thing.kind in CLOTHES:
        return f"a {size}{nouns(thing.kind)} in a {thing.colour} {CLOTHES[thing.kind]}"
    return f"a {size}{thing.colour} {nouns(thing.kind)}"


def with_articles(text: str) -> str:
    """Write "an" before a vowel.

    >>> with_articles("a orange cat and a dog under a umbrella")
    'an orange cat and a dog under an umbrella'
    """
    return re.sub(r"\ba(?= [aeiou])", "an", text)
