"""The start symbol: who gets one, from a tokenizer, a folder or a GGUF file, and that it counts for nothing."""

from __future__ import annotations

import json

import pytest
import torch

from scalegrad import decoding
from scalegrad.data import gpt2_tokenizer
from scalegrad.models.gguf_header import read_header
from scalegrad.models.pretrained import wants_start
from tests.tasks.open_ended.conftest import start_tokenizer, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return start_tokenizer()


def test_auto_follows_the_tokenizer(tokenizer):
    start = tokenizer.bos_token_id
    assert decoding.start_ids(tokenizer) == decoding.start_ids(tokenizer, "yes") == (start,)
    assert decoding.start_ids(tokenizer, "no") == ()
    plain = tiny_tokenizer()
    plain.add_special_tokens({"bos_token": "<s>"})  # it has one, and does not put it before texts
    assert decoding.start_ids(plain) == ()
    assert decoding.start_ids(plain, "yes") == (plain.bos_token_id,)


def test_gpt2_and_the_shipped_model_have_none():
    from transformers import PreTrainedTokenizerFast

    end = "<|endoftext|>"
    gpt2 = PreTrainedTokenizerFast(tokenizer_object=gpt2_tokenizer(), bos_token=end, eos_token=end)
    assert decoding.start_ids(gpt2) == decoding.start_ids(decoding.load_tokenizer("base")) == ()


def test_mistakes_are_one_sentence(tokenizer):
    with pytest.raises(ValueError, match="start must be auto, yes or no, not 'maybe'"):
        decoding.start_ids(tokenizer, "maybe")
    with pytest.raises(ValueError, match="start is yes, and the tokenizer has no start symbol"):
        decoding.start_ids(tiny_tokenizer(), "yes")


def test_it_survives_saving(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    assert decoding.start_ids(decoding.load_tokenizer(str(tmp_path))) == (tokenizer.bos_token_id,)


def test_prefixes_begin_with_it_and_their_texts_do_not(tokenizer, tmp_path):
    start, ids = tokenizer.bos_token_id, tuple(tokenizer(" the end", add_special_tokens=False)["input_ids"])
    for prefixes in (
        decoding.prefixes_of([" the end"], tokenizer, (start,)),
        decoding.prefixes_from_ids([ids], tokenizer, (start,)),
    ):
        assert prefixes == [decoding.Prefix(" the end", (start, *ids))]
    assert decoding.prefixes_of([""], tokenizer, (start,)) == [decoding.Prefix("", (start,))]
    model = tiny_model(len(tokenizer))
    decoding.complete(model, tokenizer, prefixes, tmp_path / "c.jsonl", new_tokens=5, min_new_tokens=5, name="tiny")
    text = [start, *ids]
    for _ in range(5):
        scores = model(torch.tensor([text])).logits[0, -1]
        scores[0] = -torch.inf
        text.append(int(scores.argmax()))
    record = json.loads((tmp_path / "c.jsonl").read_text())
    assert record["prefix"] + record["continuation"] == tokenizer.decode(text, skip_special_tokens=True)


def test_it_does_not_count_as_said():
    """Rows of unequal length, padded on the left: the symbol is masked where it begins a text, and only there."""
    model = tiny_model(40)
    model.generation_config.bos_token_id = 7
    inputs = {
        "input_ids": torch.tensor([[7, 5, 7, 6], [0, 0, 7, 5], [3, 7, 5, 6]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]]),
    }
    history = decoding.History.of(model, inputs)
    assert history.prompt.tolist() == [[-1, 5, 7, 6], [-1, -1, -1, 5], [3, 7, 5, 6]]


def header_file(path, **settings):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(settings.get("model", "gpt2"))
    writer.add_token_list(["a", "bc", "ünï"] * 1_000)
    writer.add_token_types([1] * 3_000)
    if "pre" in settings:
        writer.add_tokenizer_pre(settings["pre"])
    if "flag" in settings:
        writer.add_add_bos_token(settings["flag"])
    writer.add_eos_token_id(9)
    writer.add_layer_norm_rms_eps(0.5)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"model": "llama", "flag": True}, True),  # Gemma
        ({"model": "llama", "flag": False}, False),
        ({"model": "gpt2", "flag": True}, True),
        ({"model": "gpt2", "flag": False}, False),  # SmolLM2
        ({"model": "llama"}, True),  # SentencePiece models were trained with one
        ({"model": "gpt2", "pre": "llama-bpe"}, True),  # Llama 3, whose files do not say
        ({"model": "gpt2", "pre": "smollm"}, None),
    ],
)
def test_what_a_gguf_file_says(tmp_path, settings, wanted):
    header = read_header(header_file(tmp_path / "a.gguf", **settings))
    assert header["tokenizer.ggml.eos_token_id"] == 9
    assert header["llama.attention.layer_norm_rms_epsilon"] == 0.5
    assert header["general.architecture"] == "llama"
    assert wants_start(header) is wanted


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGML" + bytes(40), b"GGUF\x03\0\0\0" + b"\xff" * 40])
def test_a_broken_header_is_an_error_that_is_caught(tmp_path, content):
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.gguf"):
        read_header(tmp_path / "a.gguf")
