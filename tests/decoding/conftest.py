"""Tiny real models with random weights, of the four kinds of architecture that differ for decoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper  # noqa: F401 - slow to load, not in a test's time

CAUSAL = ("gpt2", "llama")
ENCODER_DECODER = ("t5", "bart")

Maker = Callable[..., Any]

torch.set_num_threads(1)  # tiny models: waiting for a second thread costs more than it brings


@pytest.fixture(scope="session")
def make_model() -> Maker:
    """make_model(kind, vocabulary=…, seed=…, sharpness=…): pad and end ids are 0 and 1; weights far from uniform."""
    import transformers as hf

    def make(kind: str, vocabulary: int = 40, seed: int = 0, sharpness: float = 30.0) -> Any:
        torch.manual_seed(seed)
        special = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
        small = {"vocab_size": vocabulary, **special}
        if kind == "gpt2":
            model = hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=128, **small))
        elif kind == "llama":
            sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
            config = hf.LlamaConfig(intermediate_size=32, max_position_embeddings=128, **sizes, **small)
            model = hf.LlamaForCausalLM(config)
        elif kind == "t5":
            config = hf.T5Config(
                d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0, **small
            )
            model = hf.T5ForConditionalGeneration(config)
        else:
            sizes = {
                f"{side}_{what}": n
                for side in ("encoder", "decoder")
                for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))
            }
            config = hf.BartConfig(
                d_model=16,
                max_position_embeddings=128,
                decoder_start_token_id=1,
                forced_eos_token_id=None,
                **sizes,
                **small,
            )
            model = hf.BartForConditionalGeneration(config)
        with torch.no_grad():  # freshly initialised models are nearly uniform: spread their opinions
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(0.0, (sharpness / 100.0))
        return model.eval()

    return make


@pytest.fixture(params=[*CAUSAL, *ENCODER_DECODER])
def any_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
