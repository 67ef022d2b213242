"""The scenes' detector: what comes with the package sees well, and its recipe learns."""

from __future__ import annotations

import pytest
import torch

from scalegrad.tasks.captioning import detector as module
from scalegrad.tasks.captioning.detector import (
    REGION_SIZE,
    SceneDetector,
    detector_accuracy,
    detector_loss,
    load_detector,
    pixels_of,
    save_detector,
    targets_of,
    train_detector,
)
from scalegrad.tasks.captioning.scenes import make_scene, make_scenes


def test_what_comes_with_the_package_sees_validation_scenes():
    found = detector_accuracy(load_detector(), make_scenes("valid", 200))
    assert found["found"] > 0.97
    assert found["precision"] > 0.97
    assert found["kind"] > 0.93
    assert found["colour"] > 0.95
    assert found["part_colour"] > 0.83
    assert found["size"] > 0.95
    assert found["ground"] == found["sky"] == 1.0


def test_regions_are_the_picture_and_its_things():
    scenes = list(make_scenes("valid", 50))
    regions = load_detector().regions([scene.image for scene in scenes])
    assert {item.shape[1] for item in regions} == {REGION_SIZE}
    right = sum(len(item) - 1 == len(scene.world.things) for item, scene in zip(regions, scenes, strict=True))
    assert right >= 45
    alone = load_detector().regions([scenes[3].image])[0]
    torch.testing.assert_close(alone, regions[3], atol=1e-4, rtol=1e-4)


def test_places_are_those_of_the_things():
    """Of the scenes where everything was found: each thing has a region within two cells (of twelve) of its centre."""
    scenes = list(make_scenes("valid", 30))
    for scene, item in zip(scenes, load_detector().regions([scene.image for scene in scenes]), strict=True):
        places = item[1:, -2:] / 4 + 0.5
        if len(places) == len(scene.world.things):
            for thing in scene.world.things:
                away = (places - torch.tensor([thing.x, thing.y])).abs().amax(dim=1).min()
                assert away < 2 / 12


def test_recipe_learns():
    """A few steps of the recipe already lower the loss of an untrained network (16.1 to 14.6)."""
    scenes = [make_scene("valid", number) for number in range(16)]
    pixels, targets = pixels_of([scene.image for scene in scenes]), targets_of(scenes)
    torch.manual_seed(0)
    trained = train_detector(steps=25, batch=8)
    with torch.no_grad():
        before = detector_loss(SceneDetector().eval()(pixels), targets).item()
        after = detector_loss(trained(pixels), targets).item()
    assert after < 0.95 * before


def test_damaged_weights_are_noticed(tmp_path, monkeypatch):
    first = save_detector(load_detector(), tmp_path / "a.safetensors")
    assert first == module.SHA256  # half precision, and nothing lost by writing it again
    monkeypatch.setattr(module, "SHA256", "0" * 64)
    with pytest.raises(ValueError, match="is damaged"):
        load_detector()
