"""A tiny GPT-2 with a small vocabulary, saved to a folder as users save theirs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from scalegrad.data import wikitext103
from scalegrad.tasks.open_ended.evaluation import Part

CONTEXT = 160


def figures(parts: Iterable[Part], decoding: str | None = None, penalty: str | None = None, human: bool = False) -> Any:
    """The figures of next tokens, or of the texts of `decoding` ("texts" for people's), by name."""
    parts = list(parts)
    rows = [row for part in parts for row in part.rows if (row.objective == "human") == human]
    texts = decoding is not None
    wanted = [row for row in rows if (row.new_tokens is not None) == texts and row.penalty == penalty]
    return {row.metric: row.value for row in wanted if human or row.decoding == decoding}


def tiny_tokenizer() -> Any:
    """A byte-level BPE of 400 ids, trained on the start of WikiText-103's validation text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([wikitext103("valid")[:20_000]], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")


def start_tokenizer() -> Any:
    """The same, and it puts `<s>` before every text by itself, as Gemma's and Llama's do."""
    from tokenizers import processors

    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    template = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)])
    tokenizer.backend_tokenizer.post_processor = template
    return tokenizer


def tiny_model(vocabulary: int, seed: int = 0, positions: int = CONTEXT) -> Any:
    """Two layers, random weights spread far enough that predictions vary."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": positions, "vocab_size": vocabulary}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.3)
    return model.eval()


@pytest.fixture(scope="session")
def tiny() -> tuple[Any, Any]:
    """(model, tokenizer)."""
    tokenizer = tiny_tokenizer()
    return tiny_model(len(tokenizer)), tokenizer


@pytest.fixture(scope="session")
def saved(tiny: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, in a folder."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    for part in tiny:
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def with_start(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """A model with room for 1,100 tokens, a tokenizer that adds a start symbol, and the folder of both."""
    tokenizer = start_tokenizer()
    model = tiny_model(len(tokenizer), positions=1_100)
    folder = tmp_path_factory.mktemp("start") / "model"
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return model, tokenizer, folder


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some human text of a few thousand tokens, `<unk>` among them."""
    path = tmp_path_factory.mktemp("text") / "prose.txt"
    path.write_text(wikitext103("test")[:9_000])
    return path
