"""Decoding: named strategies, n-gram blocking, GNMT beam search and the novelty penalty, over Hugging Face `generate`.

>>> from scalegrad import decoding
>>> decoding.parse("top_p=0.9") == decoding.TopP(0.9)
True
"""

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy
from scalegrad.decoding.strategies import Beam, Greedy, MinP, Strategy, TopK, TopP, Typical, parse
from scalegrad.models.pretrained import load, load_tokenizer, start_ids

if TYPE_CHECKING:
    from scalegrad.decoding.beam import BeamSearch
    from scalegrad.decoding.completion import Completed, Prefix, complete, prefixes_from_ids, prefixes_of
    from scalegrad.decoding.generation import generate, generation_arguments
    from scalegrad.decoding.history import History
    from scalegrad.decoding.processors import EndProcessor, NgramProcessor, NoveltyProcessor
    from scalegrad.decoding.sampling import RowNoise
    from scalegrad.decoding.words import WordBlock
else:
    __getattr__, __dir__ = lazy(
        __name__,
        beam="BeamSearch",
        completion="Completed Prefix complete prefixes_from_ids prefixes_of",
        generation="generate generation_arguments",
        history="History",
        processors="EndProcessor NgramProcessor NoveltyProcessor",
        sampling="RowNoise",
        words="WordBlock",
    )

__all__ = [
    "Beam",
    "BeamSearch",
    "Completed",
    "EndProcessor",
    "Greedy",
    "History",
    "MinP",
    "NgramProcessor",
    "NoveltyProcessor",
    "Prefix",
    "RowNoise",
    "Strategy",
    "TopK",
    "TopP",
    "Typical",
    "WordBlock",
    "complete",
    "generate",
    "generation_arguments",
    "load",
    "load_tokenizer",
    "parse",
    "prefixes_from_ids",
    "prefixes_of",
    "start_ids",
]
