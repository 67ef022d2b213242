"""Images as region features with their paragraphs as ids: what a captioner is trained and tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scalegrad.data.records import Problems
from scalegrad.tasks.captioning.features import Features
from scalegrad.tasks.captioning.paragraphs import Captioned
from scalegrad.tasks.captioning.vocabulary import paragraph_words
from scalegrad.training.batches import Pad

MOST_TOKENS = 175
POOL = 16  # batches that are sorted by length together


@dataclass(frozen=True)
class Example:
    """An image's regions [R, F], by its id, and a paragraph about it."""

    image_id: str
    regions: Tensor
    paragraph: str


class Paragraphs:
    """Examples as a map-style data set of `region_features` [R, F] and `labels` [T], cut at 175 tokens."""

    def __init__(self, examples: Sequence[Example], tokenizer: Any) -> None:
        self.examples = examples
        texts = [example.paragraph for example in examples]
        self.labels = [ids[:MOST_TOKENS] for ids in tokenizer(texts)["input_ids"]] if texts else []

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"region_features": self.examples[place].regions, "labels": torch.tensor(self.labels[place])}


collate = Pad(masks={"region_features": "region_mask"})  # regions padded with zeros and masked, labels with −100


def regions_batch(regions: Sequence[Tensor]) -> dict[str, Tensor]:
    """Regions [R, F] of several images as `region_features` [B, R, F] and `region_mask` [B, R].

    >>> regions_batch([torch.ones(1, 2), torch.ones(3, 2)])["region_mask"].tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    return collate([{"region_features": item} for item in regions])


def examples_of(items: Sequence[Captioned], features: Features, problems: Problems | None = None) -> list[Example]:
    """Paragraphs with the features of their images; an image without features, or unreadable ones, to `problems`."""
    problems = Problems() if problems is None else problems
    found: list[Example] = []
    size: int | None = None
    for item in items:
        try:
            regions = features[item.image_id]
        except KeyError:
            problems.add("no features", f"image {item.image_id}")
            continue
        except ValueError as error:
            problems.add("features that cannot be read", f"image {item.image_id} ({error})")
            continue
        size = size or regions.shape[1]
        if regions.shape[1] != size:
            problems.add(f"features of another size than {size}", f"image {item.image_id} ({regions.shape[1]})")
            continue
        found.append(Example(item.image_id, regions, item.paragraph))
    if not found:
        raise ValueError(f"no image of {len(items):,} has features: {problems}")
    return found


def by_length(size: int) -> Callable[[Paragraphs, int], Iterator[list[int]]]:
    """Batches of `size` paragraphs of nearly one length, in random order: hardly any step is spent on padding."""

    def batches(data: Paragraphs, seed: int) -> Iterator[list[int]]:
        random = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(data), generator=random).tolist()
        made: list[list[int]] = []
        for start in range(0, len(order), size * POOL):
            pool = sorted(order[start : start + size * POOL], key=lambda place: len(data.labels[place]))
            made += [pool[begin : begin + size] for begin in range(0, len(pool), size)]
        for place in torch.randperm(len(made), generator=random).tolist():
            yield made[place]

    return batches


def lengths(paragraphs: Sequence[str]) -> list[int]:
    """Words of each paragraph, punctuation counted."""
    return [len(paragraph_words(text)) for text in paragraphs]
