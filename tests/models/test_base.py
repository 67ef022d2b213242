"""The shipped base model: what its card says of it."""

import json
import math

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from scalegrad import metrics
from scalegrad.data import encode_corpus, wikitext2, wikitext103
from scalegrad.decoding import generate
from scalegrad.models import base


@pytest.fixture(scope="module")
def loaded():
    model = AutoModelForCausalLM.from_pretrained(base.path(), dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(base.path())


def test_its_size(loaded):
    model, tokenizer = loaded
    assert sum(p.numel() for p in model.parameters()) == 5_518_848  # tied: the head is the embedding
    assert (base.path() / "model.safetensors").stat().st_size <= 12_000_000
    stored = json.loads((base.path() / "config.json").read_text())
    assert stored["dtype"] == "bfloat16"
    assert stored["n_positions"] == 1024
    assert len(tokenizer) == stored["vocab_size"] == 8192


def test_its_tokenizer_loses_nothing(loaded):
    _, tokenizer = loaded
    text = " = Naïve café = \n The <unk> sold 1 @,@ 500 copies ; 犬 ."
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_it_predicts_wikipedia(loaded):
    model, tokenizer = loaded
    ids = torch.from_numpy(encode_corpus(wikitext103("valid")[:30_000], tokenizer)).long()[:4096].view(4, 1024)
    with torch.no_grad():
        assert math.exp(model(input_ids=ids, labels=ids).loss.item()) == pytest.approx(37.36, rel=0.02)


def test_it_writes_english_and_loops(loaded):
    """What the demonstration starts from: words, and many of them over and over."""
    model, tokenizer = loaded
    prompts = [tokenizer.encode(text) for text in (" The war was", " The river flows", " In 1906 , the city")]
    texts = [tokenizer.decode(ids) for ids in generate(model, prompts, "greedy", new_tokens=100)]
    known = {word for word in wikitext2().split() if word.isalpha()}
    words = [word for text in texts for word in text.split() if word.isalpha()]
    assert len(words) > 200
    assert sum(word in known for word in words) / len(words) > 0.95
    assert metrics.repetition(texts)["rep_1"] > 0.5
