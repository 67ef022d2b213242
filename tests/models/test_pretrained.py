"""Loading models: a GGUF file, made here number by number, is the model it was made from."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from scalegrad import decoding
from scalegrad.models import pretrained
from scalegrad.runs import Run

VOCABULARY = 261


@pytest.fixture(scope="module")
def llama():
    import transformers as hf

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    return hf.LlamaForCausalLM(
        hf.LlamaConfig(
            vocab_size=VOCABULARY, num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
            bos_token_id=0, eos_token_id=1, rms_norm_eps=1e-5, **sizes,
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def gguf_file(llama, tmp_path_factory):
    return write_gguf(llama, tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def write_gguf(llama, path, start=None):
    """The model in GGUF's words: rotary halves interleaved as llama.cpp wants them, one matrix in 8 bits."""
    gguf = pytest.importorskip("gguf")
    from tokenizers import pre_tokenizers

    config = llama.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCABULARY)
    tokens = ["<b>", "<e>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the", "Ġthe"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3] + [1] * (len(tokens) - 2))
    writer.add_token_merges(["t h", "th e", "Ġ the"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(0)
    if start is not None:
        writer.add_add_bos_token(start)
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    state = {name: value.detach().numpy() for name, value in llama.state_dict().items()}
    writer.add_tensor("token_embd.weight", state["model.embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", state["model.norm.weight"])
    for layer in range(config.num_hidden_layers):
        for ours, theirs in names.items():
            value = state[f"model.layers.{layer}.{ours}.weight"]
            if theirs in ("attn_q", "attn_k"):
                heads = config.num_attention_heads if theirs == "attn_q" else config.num_key_value_heads
                halves = value.reshape(heads, 2, value.shape[0] // heads // 2, value.shape[1])
                value = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(value.shape))
            if (layer, theirs) == (0, "ffn_down"):
                quantised = gguf.quants.quantize(value, gguf.GGMLQuantizationType.Q8_0)
                writer.add_tensor("blk.0.ffn_down.weight", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
                continue
            writer.add_tensor(f"blk.{layer}.{theirs}.weight", value)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return path


def test_a_gguf_file_is_the_model_it_was_made_from(llama, gguf_file):
    model, tokenizer = decoding.load(str(gguf_file), "cpu")
    assert model.dtype == torch.float32
    for name, value in llama.state_dict().items():
        eight_bits = name == "model.layers.0.mlp.down_proj.weight"
        step = value.abs().max() / 127
        torch.testing.assert_close(model.state_dict()[name], value, atol=float(step) if eight_bits else 0.0, rtol=0.0)
    assert not torch.equal(
        model.model.layers[0].mlp.down_proj.weight, llama.model.layers[0].mlp.down_proj.weight
    )  # it was rounded
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, llama(ids).logits, atol=0.02, rtol=0.0)
    decoded = tokenizer.decode(tokenizer(" the cat")["input_ids"], skip_special_tokens=True)
    assert decoded.lstrip() == "the cat"  # some versions of the library drop the first space
    assert len(tokenizer(" the", add_special_tokens=False)["input_ids"]) == 1
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<b>", "<e>")


@pytest.mark.parametrize("start", [True, False])
def test_a_gguf_file_says_whether_a_text_has_a_start_symbol(llama, tmp_path, start):
    """The library ignores what the file says; a tokenizer that was saved from it does as the file said."""
    path = write_gguf(llama, tmp_path / "tiny.gguf", start)
    tokenizer = decoding.load_tokenizer(str(path))
    assert decoding.start_ids(tokenizer) == ((0,) if start else ())
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<b>", "<e>")
    tokenizer.save_pretrained(tmp_path / "saved")
    again = decoding.load_tokenizer(str(tmp_path / "saved"))
    assert again(" the")["input_ids"] == tokenizer(" the")["input_ids"]


def test_it_can_be_trained_and_saved_like_any_other(gguf_file, tmp_path):
    from transformers.trainer_utils import validate_quantization_for_training

    model, tokenizer = decoding.load(str(gguf_file), "cpu")
    validate_quantization_for_training(model)  # Trainer asks this first, and refuses what is quantised
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _ = decoding.load(str(tmp_path), "cpu")
    assert "quantization_config" not in (tmp_path / "config.json").read_text()
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_the_folder_of_one_gguf_file_and_its_tokenizer(gguf_file):
    model, tokenizer = decoding.load(str(gguf_file.parent), "cpu")
    assert model.config.num_hidden_layers == 2
    alone = decoding.load_tokenizer(str(gguf_file))
    assert (alone.get_vocab(), alone.eos_token) == (tokenizer.get_vocab(), "<e>")


def test_what_cannot_be_loaded_is_one_sentence(gguf_file, tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"holds 2 GGUF files; name one of them \(a\.gguf, …\)"):
        decoding.load(str(tmp_path), "cpu")
    with pytest.raises(ValueError, match=r"a\.gguf cannot be loaded as a language model"):
        decoding.load(str(tmp_path / "a.gguf"), "cpu")
    (tmp_path / "weights.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"weights\.bin is a file; expected a folder, a \.gguf file or a hub name"):
        decoding.load(str(tmp_path / "weights.bin"), "cpu")


def test_a_folder_without_its_tokenizer_is_refused(tmp_path):
    # transformers makes an empty tokenizer of such a folder, and every text would be no tokens at all
    model, _ = decoding.load("base", "cpu")
    model.save_pretrained(tmp_path)
    for load in (lambda: decoding.load(str(tmp_path), "cpu"), lambda: pretrained.load_tokenizer(str(tmp_path))):
        with pytest.raises(ValueError, match=r"holds no tokenizer; save it there too: tokenizer\.save_pretrained\("):
            load()


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("HF_HUB_OFFLINE", "1", "HF_HUB_OFFLINE is set"),
        ("HF_ENDPOINT", "http://127.0.0.1:9", "127.0.0.1 does not answer"),
    ],
)
def test_without_the_hub_a_name_is_refused_at_once(monkeypatch, variable, value, why):
    """Nobody listens at port 9; the library alone would try for half a minute."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setenv(variable, value)
    began = time.monotonic()
    with pytest.raises(
        ValueError, match=f"model: nobody/nothing is no file or folder here, nor whole in the hub's cache, and {why}"
    ):
        decoding.load("nobody/nothing", "cpu")
    assert time.monotonic() - began < 10


def test_a_run_is_a_model_once_it_is_finished(tmp_path):
    run = Run.create(tmp_path / "run", {"objective": "mle"})
    with pytest.raises(ValueError, match=r"model: the run in .*run has not finished; train it to its end first"):
        pretrained.find_place(str(run.path))
    run.finish({})
    assert pretrained.find_place(str(run.path)) == run.model_path
    assert pretrained.find_place("no-such-name") is None


def test_the_kind_of_a_model_is_known_from_its_configuration_alone(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text('{"is_encoder_decoder": true}')
    with pytest.raises(ValueError, match="is an encoder-decoder; expected a causal language model"):
        pretrained.check_causal(str(tmp_path))
    pretrained.check_causal("base")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match="nobody/nothing is no file or folder here, nor whole in the hub's cache"):
        pretrained.check_causal("nobody/nothing")
