"""Tiny models and data for training tests."""

from __future__ import annotations

import pytest
import torch

from scalegrad.runs import Run

VOCABULARY = 40


def examples(count, seed, shortest=6, longest=12):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(shortest, longest + 1, (count,), generator=generator).tolist()
    rows = [torch.randint(3, VOCABULARY, (length,), generator=generator) for length in lengths]
    return [{"input_ids": row, "labels": row} for row in rows]


@pytest.fixture
def data():
    return examples(26, 1), examples(9, 2)


@pytest.fixture
def gpt2():
    """make(seed): with dropout, so that the random state matters."""
    import transformers as hf

    def make(seed=0):
        torch.manual_seed(seed)
        ids = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
        return hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=32, **ids)
        )

    return make


@pytest.fixture
def new_run(tmp_path):
    return lambda name: Run.create(tmp_path / name, {"name": name})
