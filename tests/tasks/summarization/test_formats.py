"""What models read and are trained on, id by id."""

import pytest
import torch
from transformers import BartConfig, GenerationConfig, GPT2Config, T5Config

from scalegrad.data.pairs import Pair
from scalegrad.tasks.summarization.bertsum import BertSumConfig, load_bert_tokenizer
from scalegrad.tasks.summarization.formats import BertSumFormat, CausalFormat, Collate, EncoderDecoderFormat, format_for
from tests.tiny_bert import tiny_tokenizer

PAIR = Pair("1", ("the cat sat .", "it was red .", "a dog ran ."), ("the cat sat\nit was big",))


class Model:
    def __init__(self, config):
        self.config = config


@pytest.fixture(scope="module")
def tokenizer(bert_folder):
    return load_bert_tokenizer(bert_folder)


def ids(tokenizer, text):
    return tokenizer.convert_tokens_to_ids(text.split())


def test_bertsum_source(tokenizer):
    """[CLS] and [SEP] around each sentence, segments in turn."""
    read = BertSumFormat(tokenizer, source_tokens=64).source(PAIR)
    text = "[CLS] the cat sat . [SEP] [CLS] it was red . [SEP] [CLS] a dog ran . [SEP]"
    assert read["input_ids"] == ids(tokenizer, text)
    assert read["token_type_ids"] == [0] * 6 + [1] * 6 + [0] * 6
    assert read["sentence_positions"] == [0, 6, 12]


@pytest.mark.parametrize(
    ("room", "text", "positions"),
    [
        (18, "[CLS] the cat sat . [SEP] [CLS] it was red . [SEP] [CLS] a dog ran . [SEP]", [0, 6, 12]),
        (14, "[CLS] the cat sat . [SEP] [CLS] it was red . [SEP] [CLS] [SEP]", [0, 6, 12]),
        (13, "[CLS] the cat sat . [SEP] [CLS] it was red . [SEP] [SEP]", [0, 6]),
        (8, "[CLS] the cat sat . [SEP] [CLS] [SEP]", [0, 6]),
        (4, "[CLS] the cat [SEP]", [0]),
    ],
)
def test_a_longer_article_is_cut_ends_and_is_counted(tokenizer, room, text, positions):
    form = BertSumFormat(tokenizer, source_tokens=room)
    read = form.source(PAIR)
    assert read["input_ids"] == ids(tokenizer, text)
    assert read["sentence_positions"] == positions
    assert len(read["token_type_ids"]) == len(read["input_ids"])
    told = form.cuts.sentence({"articles": room})
    assert told == (None if room == 18 else f"1 of 1 article is longer than {room} tokens and cut there")


def test_bertsum_target_and_back(tokenizer):
    form = BertSumFormat(tokenizer)
    target = form.example(PAIR)["labels"]
    assert target == ids(tokenizer, "the cat sat [unused0] it was big [SEP]")
    assert form.text(target[:-1]) == "the cat sat\nit was big"
    assert "sentence_positions" not in form.example(PAIR)


def test_a_longer_summary_is_cut_and_has_no_end(tokenizer):
    form = BertSumFormat(tokenizer, target_tokens=4)
    assert form.target("the cat sat on") == ids(tokenizer, "the cat sat on")
    assert form.target("the cat sat") == ids(tokenizer, "the cat sat [SEP]")
    assert form.cuts.sentence({"summaries": 4}) == "1 of 2 summaries is longer than 4 tokens and cut there"


def test_causal_prompt_is_masked_and_only_the_article_is_cut():
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]", "bos_token": "[CLS]"})
    form = CausalFormat(tokenizer, source_tokens=8, prompt="new data : {article} results :")
    made = form.example(PAIR)
    read = ids(tokenizer, "[CLS] new data [UNK] the cat results [UNK]")
    written = ids(tokenizer, "the cat sat it was big [SEP]")
    assert made["input_ids"] == read + written
    assert made["labels"] == [-100] * 8 + written
    assert form.source(PAIR)["input_ids"] == read
    assert form.cuts.cut["articles"] == 2
    with pytest.raises(ValueError, match=r"prompt must hold \{article\} once"):
        CausalFormat(tokenizer, prompt="no article")


def test_encoder_decoder_with_a_prefix():
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    form = EncoderDecoderFormat(tokenizer, source_tokens=5, prefix="we show ")
    made = form.example(PAIR)
    assert made["input_ids"] == ids(tokenizer, "we show the cat sat")
    assert made["labels"] == ids(tokenizer, "the cat sat it was big [SEP]")


@pytest.mark.parametrize(
    ("forced", "labels"),
    [("[CLS]", "[CLS] the cat sat it was big [SEP]"), (None, "the cat sat it was big [SEP]")],
)
def test_what_generation_forces_first_is_a_target(forced, labels):
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    model = Model(BartConfig())
    model.generation_config = GenerationConfig(forced_bos_token_id=forced and tokenizer.convert_tokens_to_ids(forced))
    form = format_for(model, tokenizer)
    made = form.example(PAIR)["labels"]
    assert made == ids(tokenizer, labels)
    assert form.text(made) == "the cat sat it was big"


@pytest.mark.parametrize(
    ("config", "kind", "room"),
    [
        (
            BertSumConfig({"hidden_size": 16, "max_position_embeddings": 77, "num_attention_heads": 2}),
            BertSumFormat,
            77,
        ),
        (BartConfig(max_position_embeddings=300), EncoderDecoderFormat, 300),
        (T5Config(n_positions=512), EncoderDecoderFormat, 512),
        (GPT2Config(n_positions=400), CausalFormat, 260),
    ],
)
def test_the_format_of_a_model(config, kind, room):
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    form = format_for(Model(config), tokenizer)
    assert type(form) is kind
    assert form.source_tokens == room
    if config.model_type == "t5":
        assert form.prefix == "summarize: "


def test_what_cannot_be_is_said():
    tokenizer = tiny_tokenizer()
    with pytest.raises(ValueError, match="template is for causal models, and this is a bart"):
        format_for(Model(BartConfig()), tokenizer, template="{article}")
    with pytest.raises(ValueError, match="no end symbol"):
        format_for(Model(GPT2Config()), tokenizer)
    tokenizer.add_special_tokens({"eos_token": "[SEP]"})
    with pytest.raises(ValueError, match="leaves the model's 100 positions no article"):
        format_for(Model(GPT2Config(n_positions=100)), tokenizer)


def test_collate_on_both_sides():
    rows = [{"input_ids": [5, 6, 7], "sentence_positions": [0]}, {"input_ids": [8], "sentence_positions": [0, 2]}]
    batch = Collate(9)(rows)
    assert batch["input_ids"].tolist() == [[5, 6, 7], [8, 9, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["sentence_positions"].tolist() == [[0, -1], [0, 2]]
    assert batch["input_ids"].dtype == torch.int64
    assert Collate(9, left=True)(rows)["input_ids"].tolist() == [[5, 6, 7], [9, 9, 8]]
