"""Which model is meant by a name, and loading one that summarises."""

from __future__ import annotations

from typing import Any

from scalegrad.extras import need
from scalegrad.models.pretrained import find_place, load


def is_bert(name: str) -> bool:
    """Whether `name` is a BERT, which cannot write and becomes a BertSum; else it is a model that writes already.

    >>> is_bert("minilm")
    True
    """
    from scalegrad.tasks.summarization.bertsum import DEFAULT_ENCODER

    if name == DEFAULT_ENCODER:
        return True
    hf = need("transformers", extra="summarize")
    path = find_place(name)
    if path is not None and path.suffix == ".gguf":
        return False
    try:
        kind = hf.AutoConfig.from_pretrained(str(path or name)).model_type
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split(". ")[0].split())
        raise ValueError(f"model: {name} cannot be loaded ({reason})") from None
    return kind in ("bert", "bertsum_sentence_selector")


def load_summarizer(
    name: str, device: str = "auto", dtype: str = "auto", trust_remote_code: bool = False
) -> tuple[Any, Any]:
    """Model and tokenizer by hub name, or from a folder: a model's, or a run's that is finished."""
    need("transformers", extra="summarize")
    import scalegrad.tasks.summarization.bertsum  # noqa: F401 (so that the Auto classes know a BertSum)

    model, tokenizer = load(name, device, dtype, trust_remote_code)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token  # kept out of sight by the attention mask
    return model, tokenizer
