"""Tiny captioners with random weights far from uniform, and images of unequal numbers of regions."""

from __future__ import annotations

import pytest
import torch

from scalegrad.tasks.captioning.captioner import Captioner, CaptionerConfig

VOCABULARY, REGION = 23, 6


@pytest.fixture
def make_captioner():
    def make(seed=0, sharpness=3.0, dropout=0.0, dtype=torch.float32):
        torch.manual_seed(seed)
        config = CaptionerConfig(
            vocab_size=VOCABULARY, region_size=REGION, hidden_size=8, attention_size=5, dropout=dropout
        )
        model = Captioner(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(sharpness)
        return model.to(dtype).eval()

    return make


@pytest.fixture
def fixed_captioner(make_captioner):
    """make(probabilities {id: p}): says the same distribution at every step, whatever it sees and reads."""

    def make(probabilities):
        model = make_captioner()
        with torch.no_grad():
            model.head.weight.zero_()
            model.head.bias.fill_(-50.0)
            for token, probability in probabilities.items():
                model.head.bias[token] = torch.tensor(probability).log()
        return model

    return make


@pytest.fixture
def images():
    """Regions of three images: 1, 4 and 100 of them."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(count, REGION, generator=generator) for count in (1, 4, 100)]
