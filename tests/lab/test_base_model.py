"""The base model's recipe, whole, on a corpus of a few lines."""

import gzip
import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from scalegrad.lab import base_model
from scalegrad.lab.base_model import BaseRecipe, prepared, pretrain

PARAGRAPH = "The old bridge over the river was built by the people of the town, and it stands there to this day."


@pytest.fixture
def sources(tmp_path):
    wikipedia, books = tmp_path / "dump.gz", tmp_path / "books.txt"
    body = "\n".join([PARAGRAPH, "* a list", PARAGRAPH.replace("bridge", "tower")] * 20)
    wikipedia.write_bytes(gzip.compress(f"<title>Town</title><text>{body}</text>".encode()))
    books.write_text("\n\n".join([PARAGRAPH.replace("bridge", "road")] * 40))
    return wikipedia, books


def test_text_to_ids(sources, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    tokenizer, ids = prepared(work, *sources, vocab=400)
    assert len(tokenizer) == 400
    assert tokenizer.eos_token_id == 399
    spaced = PARAGRAPH.replace(",", " ,").replace("day.", "day .")
    assert tokenizer.decode(ids["wikipedia"][: len(tokenizer.encode(spaced))].tolist()) == spaced
    again, same = prepared(work, None, None, vocab=400)  # all stages are kept: the sources are not wanted again
    assert again.get_vocab() == tokenizer.get_vocab()
    assert all(np.array_equal(ids[name], same[name]) for name in ids)


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(ValueError, match="--wikipedia FILE is needed"):
        prepared(tmp_path, None, None, vocab=400)


def test_it_learns_the_same_each_time(tmp_path):
    rng = np.random.default_rng(0)
    ids = {name: np.tile(rng.permutation(50), 20).astype(np.uint16) for name in base_model.CORPORA}
    recipe = BaseRecipe(
        vocab=60, width=32, layers=1, heads=2, context=16, steps=150, batch=8, warmup=4, learning_rate=1e-2
    )
    models = [pretrain(recipe, ids, end=59, log=tmp_path / "log.jsonl") for _ in range(2)]
    first, second = (torch.cat([p.flatten() for p in model.parameters()]) for model in models)
    assert torch.equal(first, second)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [100, 150, 100, 150]
    assert lines[1]["loss"] < 1.5  # each token has one successor in each corpus: there is much to learn


def test_the_command_writes_a_model_that_loads(sources, tmp_path, monkeypatch):
    small = BaseRecipe(vocab=400, width=32, layers=1, heads=2, context=32, batch=2)
    monkeypatch.setattr(BaseRecipe.__init__, "__defaults__", tuple(vars(small).values()))
    monkeypatch.setattr(base_model, "validation_perplexity", lambda *_: 1.0)  # 250,000 tokens: not here
    work = tmp_path / "work"
    base_model.main([f"--wikipedia={sources[0]}", f"--books={sources[1]}", f"--work={work}", "--steps=2", "--batch=2"])
    model = AutoModelForCausalLM.from_pretrained(work / "model")
    assert model.dtype == torch.bfloat16
    assert AutoTokenizer.from_pretrained(work / "model").decode([399]) == "<|endoftext|>"
    assert json.loads((work / "model" / "recipe.json").read_text())["steps"] == 2
