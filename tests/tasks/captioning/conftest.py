"""A few scenes with their regions, and a captioner that says the same distribution at every step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from scalegrad.tasks.captioning.captioner import Captioner, CaptionerConfig
from scalegrad.tasks.captioning.splits import scene_examples


@pytest.fixture(scope="session")
def few_scenes():
    """Twelve scenes with the first two sentences about each: short, for tests that train."""
    return [
        replace(item, paragraph=".".join(item.paragraph.split(".")[:2]) + ".") for item in scene_examples("train", 12)
    ]


@pytest.fixture
def fixed_captioner():
    """make(size, probabilities {id: p}) -> a captioner of `size` words for 66-wide regions."""

    def make(size, probabilities):
        torch.manual_seed(0)
        model = Captioner(CaptionerConfig(vocab_size=size, region_size=66, hidden_size=8, attention_size=4))
        with torch.no_grad():
            model.head.weight.zero_()
            model.head.bias.fill_(-50.0)
            for token, probability in probabilities.items():
                model.head.bias[token] = torch.tensor(probability).log()
        return model.eval()

    return make
