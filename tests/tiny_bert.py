"""A tiny BERT with a word-piece tokenizer, saved to a folder as a real checkpoint would be."""

from __future__ import annotations

from pathlib import Path

import torch

TEXT = """the a cat dog sat ran on mat rug slept barked and it was red blue big small we show that model is fast slow
new method for data learning results good . , ! ?"""
WORDS = TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"]


def tiny_tokenizer():
    """Lower-cased words, and single letters with their `##` forms for all others."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*SPECIAL, *dict.fromkeys([*WORDS, *letters, *(f"##{letter}" for letter in letters)])]
    core = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    core.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    core.decoder = tokenizers.decoders.WordPiece(cleanup=False)
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=core, **{f"{name}_token": token for name, token in names.items()})


def save_tiny_bert(folder: Path, width: int = 32, positions: int = 64, dropout: float = 0.1) -> Path:
    """A BERT of two layers with random weights, and its tokenizer."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=positions,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
