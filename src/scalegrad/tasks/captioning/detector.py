"""The small vision backbone of the drawn scenes: it finds things and gives each a vector.

A convolutional network with a grid of 12 × 12 cells, trained to say which cells hold the centre of a thing, and of what
kind, colour, part colour and size. A region is a cell it finds; its features are the last layer's 64 activations there
and the cell's place. The picture as a whole is one more region. The weights come with the package; this recipe made
them:

    python -m scalegrad.tasks.captioning.detector detector.safetensors
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalegrad.extras import need
from scalegrad.tasks.captioning.scenes import Scene, make_scene
from scalegrad.tasks.captioning.scenes.drawing import SIDE
from scalegrad.tasks.captioning.scenes.world import COLOURS, GROUNDS, KINDS, SIZES, SKIES

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH = 64  # of a region's activations
REGION_SIZE = WIDTH + 2  # and its place
CELLS = 12  # on a side
THRESHOLD = 0.4
MOST_REGIONS = 12

# What a cell tells of the thing whose centre it holds, and what the whole picture tells.
OF_THINGS: dict[str, tuple[str, ...]] = {
    "kind": tuple(KINDS),
    "colour": tuple(COLOURS),
    "part_colour": (*COLOURS, ""),
    "size": tuple(SIZES),
}
OF_WORLD: dict[str, tuple[str, ...]] = {"ground": tuple(GROUNDS), "sky": tuple(SKIES)}

WEIGHTS = "detector.safetensors"
SHA256 = "14e09d3581f2adf248ec846edbf735bb5d80e6d845fb115e4ce91cd9810fa830"


class SceneDetector(nn.Module):
    """Pixels [N, 3, 96, 96] from 0 to 1 -> `cells` [N, 64, 12, 12], and what is told of cells and of the whole."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, stride in ((3, 16, 2), (16, 32, 2), (32, WIDTH, 2), (WIDTH, WIDTH, 1), (WIDTH, WIDTH, 1)):
            layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.found = nn.Conv2d(WIDTH, 1, 1)
        self.of_things = nn.ModuleDict({name: nn.Conv2d(WIDTH, len(words), 1) for name, words in OF_THINGS.items()})
        self.of_world = nn.ModuleDict({name: nn.Linear(WIDTH, len(words)) for name, words in OF_WORLD.items()})

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        """`cells`, `found` [N, 12, 12] (logits), and the logits of every name in OF_THINGS and OF_WORLD."""
        cells = self.trunk(pixels)
        told = {"cells": cells, "found": self.found(cells).squeeze(1)}
        told |= {name: head(cells) for name, head in self.of_things.items()}
        return told | {name: head(cells.mean(dim=(2, 3))) for name, head in self.of_world.items()}

    @torch.no_grad()
    def regions(self, images: Sequence[Image]) -> list[Tensor]:
        """The regions of each image, [R, 66] each: the things found, surest first, after the picture as a whole."""
        told = self(pixels_of(images))
        sure = torch.sigmoid(told["found"])
        peaks = (sure == F.max_pool2d(sure, 3, 1, 1)) & (sure > THRESHOLD)
        regions = []
        for cells, certainty, peak in zip(told["cells"], sure, peaks, strict=True):
            rows, columns = peak.nonzero(as_tuple=True)
            best = certainty[rows, columns].argsort(descending=True)[:MOST_REGIONS]
            rows, columns = rows[best], columns[best]
            # Halved activations, and places from −2 to 2: all of one order, so that a captioner minds the places too.
            places = 4 * ((torch.stack([columns, rows], dim=1) + 0.5) / CELLS - 0.5)
            whole = torch.cat([cells.mean(dim=(1, 2)) / 2, cells.new_zeros(2)])
            regions.append(torch.cat([whole[None], torch.cat([cells[:, rows, columns].t() / 2, places], dim=1)]))
        return regions


def pixels_of(images: Sequence[Image]) -> Tensor:
    """Images of any size as pixels [N, 3, 96, 96] from 0 to 1."""
    numpy = need("numpy", extra="caption")
    small = [image.convert("RGB").resize((SIDE, SIDE)) for image in images]
    return torch.from_numpy(numpy.stack([numpy.asarray(image) for image in small])).permute(0, 3, 1, 2).float() / 255


def targets_of(scenes: Sequence[Scene]) -> dict[str, Tensor]:
    """What the detector should tell: `found` and OF_THINGS [N, 12, 12] (−1 where there is no centre), OF_WORLD [N]."""
    targets = {name: torch.full((len(scenes), CELLS, CELLS), -1) for name in OF_THINGS}
    for number, scene in enumerate(scenes):
        for thing in scene.world.things:
            row, column = (min(CELLS - 1, int(at * CELLS)) for at in (thing.y, thing.x))
            for name, words in OF_THINGS.items():
                targets[name][number, row, column] = words.index(getattr(thing, name))
    targets["found"] = (targets["kind"] >= 0).float()
    for name, words in OF_WORLD.items():
        targets[name] = torch.tensor([words.index(getattr(scene.world, name)) for scene in scenes])
    return targets


def detector_loss(told: dict[str, Tensor], targets: dict[str, Tensor]) -> Tensor:
    """Where things are (each centre weighing as much as ten empty cells), what they are, what surrounds them."""
    weight = torch.tensor(10.0)
    loss = 5 * F.binary_cross_entropy_with_logits(told["found"], targets["found"], pos_weight=weight)
    for name in (*OF_THINGS, *OF_WORLD):
        loss = loss + F.cross_entropy(told[name], targets[name], ignore_index=-1)
    return loss


def train_detector(steps: int = 1200, batch: int = 32, seed: int = 0) -> SceneDetector:
    """A detector trained on pictures of its own: scenes of the training split that no captioner is trained on."""
    torch.manual_seed(seed)
    detector = SceneDetector().train()
    optimizer = torch.optim.AdamW(detector.parameters(), lr=4e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        scenes = [make_scene("train", step * batch + number, seed=1_000_003 + seed) for number in range(batch)]
        loss = detector_loss(detector(pixels_of([scene.image for scene in scenes])), targets_of(scenes))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return detector.eval()


@torch.no_grad()
def detector_accuracy(detector: SceneDetector, scenes: Iterable[Scene]) -> dict[str, float]:
    """Shares that are right: `found` (centres with a peak in or beside their cell), `precision` of peaks, the rest."""
    scenes = list(scenes)
    targets = targets_of(scenes)
    told = detector(pixels_of([scene.image for scene in scenes]))
    there = targets["found"] > 0
    sure = torch.sigmoid(told["found"])
    peaks = (sure == F.max_pool2d(sure, 3, 1, 1)) & (sure > THRESHOLD)
    near = [F.max_pool2d(where.float(), 3, 1, 1) > 0 for where in (peaks, there)]
    right = {"found": float(near[0][there].float().mean()), "precision": float(near[1][peaks].float().mean())}
    for name in OF_THINGS:
        right[name] = float((told[name].argmax(dim=1)[there] == targets[name][there]).float().mean())
    for name in OF_WORLD:
        right[name] = float((told[name].argmax(dim=1) == targets[name]).float().mean())
    return right


def load_detector() -> SceneDetector:
    """The detector that comes with the package."""
    content = files("scalegrad.tasks.captioning").joinpath(WEIGHTS).read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        raise ValueError(f"the embedded {WEIGHTS} is damaged (SHA-256 {found[:12]}…): install scalegrad again")
    weights: dict[str, Any] = need("safetensors.torch", extra="caption").load(content)
    detector = SceneDetector()
    detector.load_state_dict(weights)  # kept in half precision, and exactly what the figures were taken with
    return detector.eval()


def save_detector(detector: SceneDetector, path: Path) -> str:
    """Write the weights in half precision; returns their SHA-256."""
    weights = {
        name: value.half() if value.is_floating_point() else value for name, value in detector.state_dict().items()
    }
    content: bytes = need("safetensors.torch", extra="caption").save(weights)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    import sys

    print(save_detector(train_detector(), Path(sys.argv[1])))
