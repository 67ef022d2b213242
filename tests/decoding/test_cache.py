"""Texts are the same as with the library's cache, and nothing that is held is copied when a token joins."""

from __future__ import annotations

import pytest
import torch

from scalegrad.decoding import generate, generation
from scalegrad.decoding.cache import roomy_cache

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 50, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
LLAMA = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, **SIZES,
}  # fmt: skip


def gpt2():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=64, **SIZES)
    )


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def mistral():
    """Every layer looks back at four tokens: they are the library's."""
    return transformers.MistralForCausalLM(transformers.MistralConfig(sliding_window=4, **LLAMA))


def deepseek():
    """Its keys are wider than its values."""
    widths = {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 4}
    experts = {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2}
    shape = {**LLAMA, "num_key_value_heads": 4, "moe_intermediate_size": 16, **widths, **experts}
    return transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(**shape))


def openai_gpt():
    """It knows of no cache at all."""
    return transformers.OpenAIGPTLMHeadModel(
        transformers.OpenAIGPTConfig(n_embd=32, n_layer=2, n_head=2, n_positions=64, **SIZES)
    )


def adapted():
    """A LoRA around a Llama."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    return peft.get_peft_model(llama(), config)


@pytest.fixture(autouse=True)
def _weights():
    torch.manual_seed(3)


@pytest.mark.parametrize("strategy", ["greedy", "beam=3", "beam=4,gnmt=1.0", "top_k=5", "greedy,gamma=0.3"])
@pytest.mark.parametrize("make", [gpt2, llama, mistral, deepseek, openai_gpt, adapted])
def test_texts_are_those_of_the_library_s_cache(make, strategy, monkeypatch):
    model = make().eval()
    prompts = [[5, 6, 7, 8, 9], [11, 12], [5, 5, 5, 9, 3, 2, 1, 30, 31]]
    ours = generate(model, prompts, strategy, new_tokens=20)
    monkeypatch.setattr(generation, "roomy_cache", lambda *_: None)
    assert generate(model, prompts, strategy, new_tokens=20) == ours
    assert any(len(row) > 5 for row in ours)


def test_a_token_joins_without_a_copy():
    cache = roomy_cache(gpt2().eval(), tokens=6)
    layer = cache.layers[0]
    new = [torch.randn(2, 2, count, 16) for count in (4, 1, 1, 1)]
    places = []
    for part in new:
        keys, values = cache.update(part, -part, 0)
        places.append(keys.data_ptr())
    assert places[0] == places[1] == places[2]  # room for six
    assert places[3] != places[2]  # the seventh moves them
    assert torch.equal(keys, torch.cat(new, dim=-2))
    assert torch.equal(values, -keys)
    layer.crop(-2)  # what the library does to it is taken over
    assert torch.equal(cache.update(new[1], new[1], 0)[0], torch.cat([*new[:2], new[1]], dim=-2))


def test_beams_change_places_into_one_spare_tensor():
    cache = roomy_cache(gpt2().eval(), tokens=8)
    held = torch.randn(4, 2, 3, 16)
    for layer in range(2):
        cache.update(held, 2 * held, layer)
    rooms = {room.data_ptr() for layer in cache.layers for room in layer.rooms.values()}
    order = torch.tensor([2, 2, 0, 1])
    for _ in range(3):
        cache.reorder_cache(order)
        held = held[order]
        rooms |= {room.data_ptr() for layer in cache.layers for room in layer.rooms.values()}
    assert len(rooms) == 5  # keys and values of two layers, and the spare
    for layer in range(2):
        keys, values = cache.update(held[:, :, :1], held[:, :, :1], layer)
        assert torch.equal(keys[:, :, :3], held)
        assert torch.equal(values[:, :, :3], 2 * held)


def test_where_the_library_s_own_must_do():
    shape = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
    bart = transformers.BartForConditionalGeneration(
        transformers.BartConfig(decoder_attention_heads=2, **shape, **SIZES)
    )
    assert roomy_cache(bart, 10) is None
    assert roomy_cache(openai_gpt(), 10) is None
    assert [type(layer).__name__ for layer in roomy_cache(adapted(), 10).layers] == ["RoomyLayer"] * 3
    model = gpt2()
    model.generation_config.use_cache = False
    assert roomy_cache(model, 10) is None
    model.generation_config.use_cache, model.generation_config.cache_implementation = True, "static"
    assert roomy_cache(model, 10) is None
