"""BertSum (Liu and Lapata 2019): a BERT that is first taught which sentences matter, then given a decoder.

Importing this package makes the Auto classes of transformers know a saved BertSum.
"""

# ruff: noqa: E402

from scalegrad.extras import need

need("transformers", extra="hf")  # said once, before the modules of this package derive their classes from it

from scalegrad.tasks.summarization.bertsum.abstractive import BertSum
from scalegrad.tasks.summarization.bertsum.config import BertSumConfig, SentenceSelectorConfig
from scalegrad.tasks.summarization.bertsum.encoder import DEFAULT_ENCODER, load_bert, load_bert_tokenizer
from scalegrad.tasks.summarization.bertsum.extractive import SentenceSelector

__all__ = [
    "DEFAULT_ENCODER",
    "BertSum",
    "BertSumConfig",
    "SentenceSelector",
    "SentenceSelectorConfig",
    "load_bert",
    "load_bert_tokenizer",
]
