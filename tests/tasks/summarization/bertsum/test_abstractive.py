"""BertSum: what it is made of, its loss by hand, the same after saving, and generation against a loop without cache."""

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModelForSeq2SeqLM, BertConfig

from scalegrad import decoding
from scalegrad.tasks.summarization.bertsum import (
    BertSum,
    BertSumConfig,
    SentenceSelector,
    load_bert,
    load_bert_tokenizer,
)


@pytest.fixture
def tokenizer(bert_folder):
    return load_bert_tokenizer(bert_folder)


@pytest.fixture
def model(bert_folder, tokenizer):
    torch.manual_seed(1)
    return BertSum.from_bert(load_bert(bert_folder), tokenizer, decoder_layers=2, decoder_inner=64).eval()


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(6, 40, (3, 12), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    segments = torch.tensor([[0] * 6 + [1] * 6] * 3)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def test_the_default_decoder_is_the_originals():
    decoder = BertSum(BertSumConfig(BertConfig(vocab_size=50, hidden_size=64, num_attention_heads=2))).decoder
    assert len(decoder.layers) == 6
    layer = decoder.layers[0]
    assert layer.self_attn.num_heads == layer.encoder_attn.num_heads == 8
    assert layer.fc1.weight.shape == (2048, 64)
    assert decoder.dropout == layer.dropout == layer.self_attn.dropout == 0.2
    assert decoder.embed_scale == 8.0


def test_the_decoder_is_pre_norm(model):
    """Zeroed sub-layers leave the residual stream alone: the output is the final norm of the scaled embeddings."""
    with torch.no_grad():
        for layer in model.decoder.layers:
            for last in (layer.self_attn.out_proj, layer.encoder_attn.out_proj, layer.fc2):
                last.weight.zero_()
                last.bias.zero_()
        ids = torch.tensor([[7, 8]])
        out = model.decoder(input_ids=ids, encoder_hidden_states=torch.randn(1, 3, 32)).last_hidden_state
        stream = model.decoder.embed_tokens(ids) * 32**0.5 + model.decoder.embed_positions.weight[:2]
        assert torch.allclose(out, F.layer_norm(stream, (32,)), atol=1e-6)


def test_embeddings_are_copied_from_bert_and_tied_to_the_output(model, bert_folder):
    words = load_bert(bert_folder).embeddings.word_embeddings.weight
    assert torch.equal(model.decoder.embed_tokens.weight, words)
    assert model.lm_head.weight is model.decoder.embed_tokens.weight
    assert model.bert.embeddings.word_embeddings.weight is not model.decoder.embed_tokens.weight
    assert model.lm_head.bias.abs().sum() == 0


def test_special_ids_are_the_tokenizers(model, tokenizer):
    config = model.config
    assert (config.decoder_start_token_id, config.eos_token_id) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
    assert model.generation_config.eos_token_id == tokenizer.sep_token_id


def test_decoder_reads_labels_shifted(model):
    labels = torch.tensor([[9, 10, 3], [11, 3, -100]])
    start, pad = model.config.decoder_start_token_id, model.config.pad_token_id
    read = model.prepare_decoder_input_ids_from_labels(labels)
    assert read.tolist() == [[start, 9, 10], [start, 11, 3]]
    assert model.prepare_decoder_input_ids_from_labels(torch.tensor([[-100, 4]])).tolist() == [[start, pad]]


def test_loss_is_cross_entropy_by_hand(model, inputs):
    labels = torch.tensor([[9, 10, 3], [11, 3, -100], [3, -100, -100]])
    out = model(**inputs, labels=labels)
    log_p = torch.log_softmax(out.logits.double(), dim=-1)
    total = -sum(log_p[row, step, labels[row, step]] for row in range(3) for step in range(3) if labels[row, step] >= 0)
    assert out.loss.item() == pytest.approx(total.item() / 6, rel=1e-6)
    assert model(**inputs, labels=labels, num_items_in_batch=12).loss.item() == pytest.approx(
        total.item() / 12, rel=1e-6
    )


def test_segments_and_padding_of_the_source(model, inputs):
    labels = torch.tensor([[9, 3]] * 3)
    logits = model(**inputs, labels=labels).logits
    alone = {name: value[1:2, :9] for name, value in inputs.items()}
    assert torch.allclose(model(**alone, labels=labels[:1]).logits, logits[1:2], atol=1e-5)
    other = {**inputs, "token_type_ids": 1 - inputs["token_type_ids"]}
    assert not torch.allclose(model(**other, labels=labels).logits, logits, atol=1e-3)


def test_saved_and_loaded_by_the_auto_class(model, tokenizer, inputs, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert type(again) is BertSum
    assert again.lm_head.weight is again.decoder.embed_tokens.weight
    labels = torch.tensor([[9, 3]] * 3)
    assert torch.equal(again(**inputs, labels=labels).logits, model(**inputs, labels=labels).logits)
    loaded, its_tokenizer = decoding.load(str(tmp_path), device="cpu")
    assert type(loaded) is BertSum
    assert its_tokenizer.sep_token_id == tokenizer.sep_token_id


def sharpened(model):
    """Freshly made models are nearly indifferent; this one has opinions."""
    with torch.no_grad():
        model.decoder.embed_tokens.weight.mul_(20.0)
    return model


def test_greedy_generation_equals_a_loop_without_cache(model, inputs):
    model = sharpened(model)
    made = decoding.generate(model, inputs, "greedy", new_tokens=8)
    for row, ids in enumerate(made):
        one = {name: value[row : row + 1] for name, value in inputs.items()}
        read = [model.config.decoder_start_token_id]
        while len(read) <= 8:
            with torch.no_grad():
                logits = model(**one, decoder_input_ids=torch.tensor([read])).logits
            read.append(int(logits[0, -1].argmax()))
            if read[-1] == model.config.eos_token_id:
                read.pop()
                break
        assert ids == read[1:]


def test_beam_blocks_trigrams_of_words(model, inputs, tokenizer):
    model = sharpened(model)
    arguments = {"new_tokens": 12, "min_new_tokens": 12, "tokenizer": tokenizer}
    for ids in decoding.generate(model, inputs, "beam=3,gnmt=1.0,block_words=3", **arguments):
        words = tokenizer.decode(ids, skip_special_tokens=True).split()
        trigrams = list(zip(words, words[1:], words[2:], strict=False))
        assert len(set(trigrams)) == len(trigrams)
        assert len(ids) == 12


def test_nothing_to_read_is_said(model, inputs):
    with pytest.raises(ValueError, match="decoder_input_ids or labels must be given"):
        model(**inputs)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="decoder_heads must divide the encoder's width 60, and 8 does not"):
        BertSumConfig(BertConfig(hidden_size=60, num_attention_heads=2))


def test_the_first_stages_encoder_is_taken_over(bert_folder, tokenizer, tmp_path):
    selector = SentenceSelector.from_bert(load_bert(bert_folder))
    with torch.no_grad():
        selector.bert.embeddings.word_embeddings.weight.add_(1.0)
    selector.save_pretrained(tmp_path)
    bert = load_bert(tmp_path)
    assert torch.equal(bert.embeddings.word_embeddings.weight, selector.bert.embeddings.word_embeddings.weight)
    model = BertSum.from_bert(bert, tokenizer, decoder_layers=1)
    assert torch.equal(model.decoder.embed_tokens.weight, selector.bert.embeddings.word_embeddings.weight)


@pytest.mark.parametrize(
    ("name", "told"),
    [("./nowhere", "there is no folder ./nowhere"), ("gpt2_folder", "must be of the BERT architecture.* is of gpt2")],
)
def test_what_is_no_bert_is_refused(name, told, tmp_path):
    if name == "gpt2_folder":
        from transformers import GPT2Config

        GPT2Config().save_pretrained(tmp_path)
        name = str(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        load_bert(name)
