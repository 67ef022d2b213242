"""Words of paragraphs as ids: lower-cased, punctuation kept as words of its own, rare words unknown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from scalegrad.counts import counted
from scalegrad.extras import need

PAD, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
SPECIAL = (PAD, START, END, UNKNOWN)  # ids 0 to 3

_WORD = re.compile(r"\w+|[^\w\s]")
_BEFORE = re.compile(r" (?=[.,!?;:)%])")
_AFTER = re.compile(r"(?<=[(]) ")
_CLITIC = re.compile(r" ' (?=(?:s|t|m|d|re|ve|ll)\b)")


def paragraph_words(text: str) -> list[str]:
    """The words of a paragraph: lower-cased, every mark of punctuation one too.

    >>> paragraph_words("A dog, it's brown.")
    ['a', 'dog', ',', 'it', "'", 's', 'brown', '.']
    """
    return _WORD.findall(text.lower())


def join_words(words: Iterable[str]) -> str:
    """Words as readable text again: no space before marks that close, none around an apostrophe.

    >>> join_words(["a", "dog", ",", "it", "'", "s", "brown", "."])
    "a dog, it's brown."
    """
    return _CLITIC.sub("'", _AFTER.sub("", _BEFORE.sub("", " ".join(words))))


def build_tokenizer(paragraphs: Iterable[str], more_than: int = 4) -> Any:
    """A transformers tokenizer of the words that occur `more_than` so many times, most frequent first.

    Encoding is `paragraph_words`; a text gets the end symbol, not the start symbol, as the captioner's labels do.

    >>> tokenizer = build_tokenizer(["A dog. A cat."], more_than=1)
    >>> tokenizer("a dog.")["input_ids"], tokenizer.convert_ids_to_tokens([3, 4, 5])
    ([5, 3, 4, 2], ['<unk>', '.', 'a'])
    """
    counts = Counter(word for text in paragraphs for word in paragraph_words(text))
    kept = sorted((word for word, count in counts.items() if count > more_than), key=lambda word: (-counts[word], word))
    if not kept:
        raise ValueError(f"paragraphs hold no word more than {counted(more_than, 'time')}: nothing to learn from")
    tokenizers = need("tokenizers", extra="caption")
    numbers = {word: number for number, word in enumerate((*SPECIAL, *kept))}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token=UNKNOWN))
    words.normalizer = tokenizers.normalizers.Lowercase()
    pattern = tokenizers.Regex(_WORD.pattern)
    words.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, behavior="removed", invert=True)
    words.post_processor = tokenizers.processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 2)])
    return need("transformers", extra="caption").PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token=PAD, bos_token=START, eos_token=END, unk_token=UNKNOWN
    )


def text_of(tokenizer: Any, ids: Iterable[int]) -> str:
    """Generated ids as text; special symbols are left out, an unknown word is kept as <unk>."""
    names = tokenizer.convert_ids_to_tokens(list(ids))
    return join_words(name for name in names if name not in (PAD, START, END))
