"""Text to measure and to learn from: embedded corpora, GPT-2's tokenizer, and readers for what users bring.

>>> from scalegrad.data import encode_corpus, gpt2_tokenizer, language_modelling_chunks, wikitext103
>>> ids = encode_corpus(wikitext103("test"), gpt2_tokenizer())
>>> len(ids)
289583
>>> language_modelling_chunks(ids).shape
(282, 1025)
"""

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy
from scalegrad.data.corpora import imdb, imdb_reviews, ptb
from scalegrad.data.embedded import gpt2_tokenizer, scitldr, wikitext2, wikitext103
from scalegrad.data.pairs import Pair, read_pairs
from scalegrad.data.readers import read_texts
from scalegrad.data.records import Problems
from scalegrad.data.sentences import sentences

if TYPE_CHECKING:
    from scalegrad.data.blocks import completion_blocks, encode_corpus, language_modelling_chunks
else:
    __getattr__, __dir__ = lazy(__name__, blocks="completion_blocks encode_corpus language_modelling_chunks")

__all__ = [
    "Pair",
    "Problems",
    "completion_blocks",
    "encode_corpus",
    "gpt2_tokenizer",
    "imdb",
    "imdb_reviews",
    "language_modelling_chunks",
    "ptb",
    "read_pairs",
    "read_texts",
    "scitldr",
    "sentences",
    "wikitext2",
    "wikitext103",
]
