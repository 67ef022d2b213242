"""A BERT of random weights that is small enough for a few seconds of a CPU, in a folder as any other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from scalegrad.extras import need

WORD_PIECES = 1200


def save_small_bert(folder: Path, texts: Iterable[str]) -> str:
    """Two layers, 64 wide, with the word pieces of `texts`; what is in `folder` already stays."""
    if not (folder / "config.json").is_file():
        hf = need("transformers", extra="summarize")
        tokenizer = _tokenizer(texts)
        config = hf.BertConfig(
            vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128
        )
        torch.manual_seed(0)
        tokenizer.save_pretrained(folder)
        hf.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return str(folder)


def _tokenizer(texts: Iterable[str]) -> Any:
    """Lower-cased word pieces, with BERT's special tokens and the unused one that begins a summary."""
    tokenizers, hf = need("tokenizers", extra="summarize"), need("transformers", extra="summarize")
    special = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    core.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    core.decoder = tokenizers.decoders.WordPiece(cleanup=False)
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=WORD_PIECES, special_tokens=special, show_progress=False)
    core.train_from_iterator(texts, trainer)
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return hf.PreTrainedTokenizerFast(tokenizer_object=core, **{f"{name}_token": sign for name, sign in names.items()})
