"""The base model's recipe, whole, on a corpus of a few lines."""

import gzip
import json
import lzma
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from paper import base_model
from paper.base_model import BaseRecipe, prepared, pretrain
from paper.saved_model import save_whole
from scalegrad.decoding import load

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
    tokenizer, ids = prepared(work, *sources, BaseRecipe(vocab=400))
    assert len(tokenizer) == 400
    assert tokenizer.eos_token_id == 399
    spaced = PARAGRAPH.replace(",", " ,").replace("day.", "day .")
    assert tokenizer.decode(ids["wikipedia"][: len(tokenizer.encode(spaced))].tolist()) == spaced
    again, same = prepared(
        work, None, None, BaseRecipe(vocab=400)
    )  # all stages are kept: the sources are not wanted again
    assert again.get_vocab() == tokenizer.get_vocab()
    assert all(np.array_equal(ids[name], same[name]) for name in ids)


def test_a_kill_leaves_no_half_of_a_model(tmp_path):
    """Weights come after the configuration: a folder with the one and not the other would pass for a model."""

    class Half:
        def save_pretrained(self, folder):
            folder.mkdir(parents=True)
            (folder / "config.json").write_text("{}")
            raise KeyboardInterrupt

    class Whole:
        def save_pretrained(self, folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "config.json").write_text("{}")
            (folder / "weights").write_text("1")

    out = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        save_whole(out, Half())
    assert not out.exists()
    save_whole(out, Whole(), recipe={"steps": 2})
    assert sorted(path.name for path in out.iterdir()) == ["config.json", "recipe.json", "weights"]
    (out / "mine.txt").write_text("kept")
    save_whole(out, Whole(), recipe={"steps": 3})
    assert json.loads((out / "recipe.json").read_text()) == {"steps": 3}
    assert (out / "mine.txt").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(ValueError, match="--wikipedia FILE is needed"):
        prepared(tmp_path, None, None, BaseRecipe(vocab=400))


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
    monkeypatch.setitem(base_model.RECIPES, "base", small)
    monkeypatch.setattr(base_model, "validation_perplexity", lambda *_: 1.0)  # 250,000 tokens: not here
    work = tmp_path / "work"
    base_model.main([f"--wikipedia={sources[0]}", f"--books={sources[1]}", f"--work={work}", "--steps=2", "--batch=2"])
    model = AutoModelForCausalLM.from_pretrained(work / "model")
    assert model.dtype == torch.bfloat16
    assert AutoTokenizer.from_pretrained(work / "model").decode([399]) == "<|endoftext|>"
    made = json.loads((work / "model" / "recipe.json").read_text())
    assert (made["recipe"]["steps"], made["trained"]["step"], made["validation_perplexity"]) == (2, 2, 1.0)


def test_the_small_model_is_gpt2s_shape_with_its_own_ids(sources, tmp_path, monkeypatch):
    """The recipe's shape has GPT-2 small's 124,439,808 weights; a narrower one of it is made whole and scored."""
    recipe = base_model.RECIPES["small"]
    with torch.device("meta"):
        model = base_model.new_model(recipe, end=50_256)
    assert sum(p.numel() for p in model.parameters()) == 124_439_808
    narrow = replace(recipe, width=8, layers=1, heads=1, context=16, batch=2)
    monkeypatch.setitem(base_model.RECIPES, "small", narrow)
    monkeypatch.setattr(base_model, "validation_perplexity", lambda *_: 1.0)
    work = tmp_path / "work"
    base_model.main(["--recipe=small", f"--wikipedia={sources[0]}", f"--books={sources[1]}", f"--work={work}",
                     "--steps=2"])  # fmt: skip
    model, tokenizer = load(str(work / "model"))
    assert (model.dtype, model.config.vocab_size) == (torch.float32, 50_257)
    assert tokenizer("Hello world")["input_ids"] == [15496, 995]
    spaced = f"{PARAGRAPH.replace(',', ' ,').replace('day.', 'day .')}"
    assert tokenizer.decode(np.load(work / "wikipedia.npy")[: len(tokenizer(spaced)["input_ids"])].tolist()) == spaced
    (work / "wikipedia.npy.xz").write_bytes(lzma.compress((work / "wikipedia.npy").read_bytes()))
    (work / "wikipedia.npy").unlink()  # ids may come packed, as they travel
    _, ids = prepared(work, None, None, narrow)
    assert tokenizer.decode(ids["wikipedia"][:2].tolist()) == "The old"


def test_minutes_end_training_with_the_rate_all_the_way_down(tmp_path, monkeypatch):
    """The clock moves a second a look: a tenth of a minute is over after some six steps, not after 1,000."""
    ids = {name: np.arange(50, dtype=np.uint16) for name in base_model.CORPORA}
    recipe = BaseRecipe(vocab=60, width=8, layers=1, heads=1, context=8, steps=1000, batch=2, warmup=2, minutes=0.1)
    ticks = iter(range(10_000))
    monkeypatch.setattr(base_model.time, "perf_counter", lambda: float(next(ticks)))
    pretrain(recipe, ids, end=59, log=tmp_path / "log.jsonl")
    (line,) = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert line["step"] == 6
    assert base_model.learning_rate(recipe, 5, share=1.0) == pytest.approx(recipe.final_learning_rate)
