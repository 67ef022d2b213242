"""`generate` on real tiny models: batches, seeds, lengths, and settings a checkpoint brings along."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from scalegrad import decoding

PROMPTS = [[5, 6, 7, 8, 9, 5, 6, 7], [10], [12, 0, 14], [3, 3, 3, 3, 3]]  # 0 is the padding id, here a real one
STRATEGIES = (
    "greedy",
    "greedy,gamma=0.1",
    "greedy,soft_block=2",
    "greedy,block=1,seen=generated",
    "greedy,block=2,seen=all",
    "beam=4,gnmt=1.5",
    "beam=3,gamma=0.3,block=2,seen=prompt",
    "top_k=5",
    "top_p=0.8,temperature=1.5,gamma=0.5",
    "min_p=0.1",
    "typical=0.8",
)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_padded_batch_gives_the_texts_of_one_by_one(make_model: Any, any_kind: str, strategy: str) -> None:
    model = make_model(any_kind, seed=3)
    together = decoding.generate(model, PROMPTS, strategy, new_tokens=16, keys=list("abcd"))
    alone = [
        decoding.generate(model, [prompt], strategy, new_tokens=16, keys=[key])[0]
        for prompt, key in zip(PROMPTS, "abcd", strict=True)
    ]
    assert together == alone
    assert sum(map(len, together)) > 20


def greedy_by_hand(model: Any, prompt: list[int], steps: int) -> list[int]:
    """No cache, no padding, no library: argmax of a full forward pass at every step."""
    new: list[int] = []
    for _ in range(steps):
        with torch.no_grad():
            if model.config.is_encoder_decoder:
                decoder = torch.tensor([[model.config.decoder_start_token_id, *new]])
                logits = model(input_ids=torch.tensor([prompt]), decoder_input_ids=decoder).logits
            else:
                logits = model(torch.tensor([prompt + new])).logits
        if (token := int(logits[0, -1].argmax())) == 1:
            break
        new.append(token)
    return new


def test_greedy_is_the_argmax_of_the_model(make_model: Any, any_kind: str) -> None:
    model = make_model(any_kind, seed=3)
    assert decoding.generate(model, PROMPTS, new_tokens=16) == [greedy_by_hand(model, p, 16) for p in PROMPTS]


def test_settings_of_the_checkpoint_do_not_change_a_strategy(make_model: Any, any_kind: str) -> None:
    plain, odd = make_model(any_kind, seed=3), make_model(any_kind, seed=3)
    odd.generation_config.update(
        do_sample=True,
        temperature=0.3,
        top_k=2,
        top_p=0.5,
        min_p=0.2,
        typical_p=0.5,
        repetition_penalty=3.0,
        no_repeat_ngram_size=1,
        num_beams=4,
        length_penalty=5.0,
        early_stopping=True,
        min_length=12,
        max_length=14,
    )
    for strategy in ("greedy", "top_p=0.9", "beam=3,gnmt=1.0"):
        expected = decoding.generate(plain, PROMPTS, strategy, new_tokens=10)
        assert decoding.generate(odd, PROMPTS, strategy, new_tokens=10) == expected


def test_embeddings_as_prompts(make_model: Any) -> None:
    model = make_model("gpt2", seed=3)
    ids = torch.tensor([[5, 6, 7]])
    embedded = {"inputs_embeds": model.get_input_embeddings()(ids).detach()}
    expected = decoding.generate(model, {"input_ids": ids}, "greedy,gamma=0.3,seen=generated", new_tokens=9)
    assert decoding.generate(model, embedded, "greedy,gamma=0.3,seen=generated", new_tokens=9) == expected
    assert len(expected[0]) == 9


def test_seeds(make_model: Any, any_kind: str) -> None:
    model = make_model(any_kind, seed=3)
    first = decoding.generate(model, PROMPTS, "top_p=0.9", new_tokens=12, seed=1)
    torch.manual_seed(99)  # the global state takes no part
    assert decoding.generate(model, PROMPTS, "top_p=0.9", new_tokens=12, seed=1) == first
    assert decoding.generate(model, PROMPTS, "top_p=0.9", new_tokens=12, seed=2) != first
    same_prompt = decoding.generate(
        model, [PROMPTS[0]] * 3, "top_p=1.0", new_tokens=12, min_new_tokens=12, keys=[7, 8, 7]
    )
    assert same_prompt[0] == same_prompt[2] != same_prompt[1]


def test_the_end_symbol_waits_for_the_minimum_length(make_model: Any, any_kind: str) -> None:
    model = make_model(any_kind, vocabulary=6, seed=1)
    for strategy in ("greedy", "beam=3,gnmt=0.5", "top_p=1.0"):
        free = decoding.generate(model, PROMPTS_OF_SIX, strategy, new_tokens=30)
        held = decoding.generate(model, PROMPTS_OF_SIX, strategy, new_tokens=30, min_new_tokens=9)
        assert min(map(len, held)) >= 9
        if strategy == "top_p=1.0":
            assert min(map(len, free)) < 9  # without it they end before


PROMPTS_OF_SIX = [[2, 3], [4], [5, 5, 5], [3, 2, 4]]


def test_tokenizer_style_inputs_and_extra_processors(make_model: Any) -> None:
    model = make_model("llama", seed=3)
    inputs = {
        "input_ids": torch.tensor([[0, 0, 5], [7, 8, 9]]),
        "attention_mask": torch.tensor([[0, 0, 1], [1, 1, 1]]),
    }
    assert decoding.generate(model, inputs, new_tokens=6) == decoding.generate(model, [[5], [7, 8, 9]], new_tokens=6)
    allowed = torch.full((40,), -torch.inf)
    allowed[[20, 21]] = 0.0
    only_two = decoding.generate(model, inputs, new_tokens=6, processors=[lambda ids, scores: scores + allowed])
    assert {token for row in only_two for token in row} <= {20, 21}
    assert [len(row) for row in only_two] == [6, 6]


def test_no_mask_means_no_padding(make_model: Any) -> None:
    model = make_model("gpt2", seed=3)
    ids = torch.tensor([[0, 0, 5], [7, 8, 9]])  # the padding id, given as a prompt on purpose
    assert decoding.generate(model, {"input_ids": ids}, new_tokens=6) == [
        greedy_by_hand(model, row, 6) for row in ids.tolist()
    ]


def test_dropout_is_off_and_the_mode_restored(make_model: Any) -> None:
    model = make_model("gpt2", seed=3)
    expected = decoding.generate(model, PROMPTS, new_tokens=8)
    model.train()
    assert decoding.generate(model, PROMPTS, new_tokens=8) == expected
    assert model.training


def test_a_generated_padding_id_counts_as_seen(make_model: Any) -> None:
    """Only padding itself is ignored; the same id in the text is a token like any other."""
    model = make_model("gpt2", seed=3)
    prompt = [0, 0, 0, 5]
    once = decoding.generate(model, [prompt], "greedy,block=1", new_tokens=20)[0]
    assert 0 not in once
    assert len(set(once)) == len(once)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"new_tokens": 0}, "new_tokens must be at least 1, not 0"),
        ({"new_tokens": 3, "min_new_tokens": 4}, r"min_new_tokens must lie in \[0, 3\], not 4"),
        (
            {"new_tokens": 3, "strategy": "top_k=3", "keys": [1]},
            "every row once, not 1 key for 2 rows",
        ),
        ({"new_tokens": 3, "strategy": "best"}, "not 'best'"),
    ],
)
def test_mistakes_get_one_sentence(make_model: Any, call: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decoding.generate(make_model("gpt2"), [[3], [4, 5]], **call)


def test_inputs_that_cannot_be_right(make_model: Any) -> None:
    gpt2 = make_model("gpt2")
    right = {"input_ids": torch.tensor([[3, 0], [4, 5]]), "attention_mask": torch.tensor([[1, 0], [1, 1]])}
    with pytest.raises(ValueError, match="padded on the left"):
        decoding.generate(gpt2, right, new_tokens=2)
    nothing = {"input_ids": torch.tensor([[0, 3]]), "attention_mask": torch.tensor([[0, 0]])}
    with pytest.raises(ValueError, match="attention_mask must keep at least one id of every row"):
        decoding.generate(make_model("t5"), nothing, new_tokens=2)
    with pytest.raises(ValueError, match="not an empty one"):
        decoding.generate(gpt2, [[3], []], new_tokens=2)
    with pytest.raises(ValueError, match="not none"):
        decoding.generate(gpt2, [], new_tokens=2)
    inputs = {"input_ids": torch.tensor([[3, 1]]), "decoder_input_ids": torch.tensor([[5]])}
    with pytest.raises(ValueError, match="decoder_input_ids must begin with the decoder start id 0"):
        decoding.generate(make_model("t5"), inputs, new_tokens=2)


def test_a_forced_decoder_beginning(make_model: Any) -> None:
    model = make_model("t5", seed=3)
    whole = decoding.generate(model, {"input_ids": torch.tensor([[5, 6, 1]])}, new_tokens=8)[0]
    inputs = {"input_ids": torch.tensor([[5, 6, 1]]), "decoder_input_ids": torch.tensor([[0, *whole[:3]]])}
    assert decoding.generate(model, inputs, new_tokens=5)[0] == whole[3:]
