"""Scenes: the same from the same seed, drawn as they say, and described truly."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from scalegrad.metrics import repetition, words
from scalegrad.tasks.captioning.scenes import make_scene, make_scenes
from scalegrad.tasks.captioning.scenes.drawing import SIDE, draw
from scalegrad.tasks.captioning.scenes.paragraphs import CLOTHES, NOUNS, write_paragraph
from scalegrad.tasks.captioning.scenes.world import COLOURS, KINDS, SKIES, Thing, World

KIND_OF = {noun: kind for kind in KINDS for noun in NOUNS.get(kind, (kind,))}
SCENES = list(make_scenes("valid", 400))


def test_the_same_seed_gives_the_same_scene():
    first, again = make_scene("train", 5, seed=3), make_scene("train", 5, seed=3)
    assert first == again
    assert first.image.tobytes() == again.image.tobytes()
    assert make_scene("train", 5, seed=4) != first


def test_splits_share_no_scene():
    names = {
        split: {(scene.world, scene.paragraph) for scene in make_scenes(split, 300)} for split in ("train", "test")
    }
    assert len(names["train"]) == len(names["test"]) == 300
    assert not names["train"] & names["test"]
    with pytest.raises(ValueError, match="split must be one of train, valid, test, not 'dev'"):
        make_scene("dev", 0)


def test_a_thing_is_drawn_where_and_in_the_colour_it_is_said_to_be():
    """A ball's upper half, the sky beside it, and one thing covering another that stands behind it."""
    ball = Thing("ball", "red", "white", "large", 0.5, 0.75)
    behind = Thing("ball", "blue", "white", "large", 0.5, 0.65)
    image = draw(World("grass", "blue", (behind, ball)), Random(0))
    light = image.getpixel((2, 2))[0] / SKIES["blue"][0]
    place = (int(0.5 * SIDE), int((0.75 - 0.08) * SIDE))
    shown = [value / light for value in image.getpixel(place)]
    assert shown == pytest.approx(COLOURS["red"], abs=4)


def test_every_kind_can_be_drawn_and_looks_like_no_other():
    drawn = {}
    for name, kind in KINDS.items():
        thing = Thing(name, kind.colours[0], (*kind.part_colours, "")[0], "large", 0.5, 0.25 if kind.in_sky else 0.7)
        drawn[name] = draw(World("sand", "gray", (thing,)), Random(0)).tobytes()
    assert len(set(drawn.values())) == len(KINDS) == 20


def test_what_a_paragraph_says_is_true():
    """Every "COLOUR NOUN" of 400 paragraphs is in its scene, and so is every colour of a part or of clothes."""
    colour = "|".join(COLOURS)
    noun = "|".join(sorted(KIND_OF, key=len, reverse=True))
    checked = Counter()
    for scene in SCENES:
        things = scene.world.things
        for said, what in re.findall(rf"\b({colour}) ({noun})\b", scene.paragraph):
            assert any(thing.colour == said and thing.kind == KIND_OF[what] for thing in things), scene.paragraph
            checked["things"] += 1
        for said, part in re.findall(rf"with a ({colour}) (\w+)", scene.paragraph):
            assert any(thing.part == part and thing.part_colour == said for thing in things), scene.paragraph
            checked["parts"] += 1
        for person, said in re.findall(rf"\b(man|guy|woman|lady) in a ({colour}) ", scene.paragraph):
            assert any(thing.kind == KIND_OF[person] and thing.colour == said for thing in things), scene.paragraph
            checked["clothes"] += 1
    assert checked["things"] > 1000
    assert checked["parts"] > 150
    assert checked["clothes"] > 50


def test_left_is_left():
    left = Thing("dog", "brown", "red", "small", 0.1, 0.7)
    texts = [write_paragraph(World("snow", "dark", (left,)), Random(seed)) for seed in range(60)]
    assert sum("the left" in text for text in texts) > 12
    assert not any("the right" in text or "middle" in text or "center" in text for text in texts)


def test_paragraphs_are_about_as_long_and_as_repetitive_as_peoples():
    """About sixty words; Rep-n of the order of Visual Genome's paragraphs (.42, .12, .04 there)."""
    texts = [scene.paragraph for scene in SCENES]
    lengths = [len(words(text)) for text in texts]
    assert 60 < sum(lengths) / len(lengths) < 75
    assert min(lengths) >= 30
    assert max(lengths) <= 130
    found = repetition(texts)
    assert 0.40 < found["rep_1"] < 0.52
    assert 0.10 < found["rep_2"] < 0.20
    assert 0.03 < found["rep_3"] < 0.08
    assert len(set(texts)) == len(texts)
    assert all(re.fullmatch(r"[a-z ,.]+\.", text) for text in texts)
    assert set(CLOTHES) == {"man", "woman"}
