"""On a model that loops, the novelty penalty is a dial: the smaller gamma, the less the text repeats."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from scalegrad import decoding

CYCLES, LENGTH = (0.3, 0.5, 0.7, 0.9), 6  # how strongly each cycle of six tokens draws its own next token
VOCABULARY = 2 + len(CYCLES) * LENGTH  # ids 0 and 1 are padding and end


def next_token_table() -> torch.Tensor:
    """[V, V] the language: with its cycle's strength the next of the cycle, otherwise any token."""
    table = torch.full((VOCABULARY, VOCABULARY), 1.0 / (VOCABULARY - 2))
    table[:, :2] = 0.0
    for cycle, strength in enumerate(CYCLES):
        for place in range(LENGTH):
            token, follower = 2 + cycle * LENGTH + place, 2 + cycle * LENGTH + (place + 1) % LENGTH
            table[token] *= 1.0 - strength
            table[token, follower] += strength
    return table


@pytest.fixture(scope="module")
def looping_model() -> Any:
    """A tiny GPT-2 trained by MLE for a few seconds on that language; greedy decoding falls into a cycle."""
    import transformers as hf

    torch.manual_seed(0)
    config = hf.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=1, n_head=2, n_positions=128, pad_token_id=0, eos_token_id=1,
        bos_token_id=None, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = hf.GPT2LMHeadModel(config)
    table = next_token_table()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        ids = torch.randint(2, VOCABULARY, (16, 1))
        for _ in range(32):
            ids = torch.cat([ids, torch.multinomial(table[ids[:, -1]], 1)], 1)
        loss = torch.nn.functional.cross_entropy(model(ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def rep_1(rows: list[list[int]]) -> float:
    """Mean share of tokens that are repeats."""
    return sum(1.0 - len(set(row)) / len(row) for row in rows) / len(rows)


GAMMAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.005)
PREFIXES = [[token] for token in range(2, VOCABULARY)]


def test_the_model_loops(looping_model: Any) -> None:
    rows = decoding.generate(looping_model, PREFIXES, "greedy", new_tokens=18)
    assert rep_1(rows) > 0.6  # three times round a cycle of six, 6 of 18 tokens are distinct: 2/3
    assert sum(row[6:12] == row[12:] for row in rows) >= 20  # of 24


@pytest.mark.parametrize("strategy", ["greedy", "beam=3", "top_p=1.0"])
def test_rep_1_falls_as_gamma_falls(looping_model: Any, strategy: str) -> None:
    values = [
        rep_1(decoding.generate(looping_model, PREFIXES, f"{strategy},gamma={gamma}", new_tokens=18))
        for gamma in GAMMAS
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[2] > values[4] > values[6]
    assert values[0] - values[-1] > 0.2


def test_only_what_was_generated_may_count(looping_model: Any) -> None:
    """With seen=prompt, a loop over new tokens is not discouraged; with seen=generated, the prompt is not."""
    prefix = [list(range(2, 8))]  # the whole weakest cycle
    loop = decoding.generate(looping_model, prefix, "greedy", new_tokens=6)[0]
    assert sorted(loop) == prefix[0]
    first = {
        seen: decoding.generate(looping_model, prefix, f"greedy,gamma=0.01,seen={seen}", new_tokens=6)[0]
        for seen in ("all", "generated", "prompt")
    }
    assert not set(first["all"]) & set(prefix[0])
    assert not set(first["prompt"]) & set(prefix[0])
    assert first["generated"] == loop
    assert len(set(first["all"])) == 6
