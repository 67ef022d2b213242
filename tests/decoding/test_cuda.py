"""The same texts on a GPU; runs where there is one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from scalegrad import decoding
from scalegrad.decoding import RowNoise

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def test_noise_is_the_same_on_every_device() -> None:
    scores = torch.randn(4, 100, generator=torch.Generator().manual_seed(0))
    noise = RowNoise(5, range(4), start=0)
    here, there = noise(torch.zeros(4, 3), scores), noise(torch.zeros(4, 3).cuda(), scores.cuda())
    torch.testing.assert_close(there.cpu(), here, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("strategy", ["greedy,gamma=0.2,soft_block=2", "beam=4,gnmt=1.0,block=2", "top_p=0.9"])
def test_texts_are_the_same_on_both(make_model: Any, any_kind: str, strategy: str) -> None:
    model, prompts = make_model(any_kind, seed=3), [[5, 6, 7, 8], [10], [12, 13, 14]]
    here = decoding.generate(model, prompts, strategy, new_tokens=16)
    assert decoding.generate(model.cuda(), prompts, strategy, new_tokens=16) == here
