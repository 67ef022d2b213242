"""Human text to hold a file of texts against: embedded Wikipedia prose, or the user's own, at the texts' length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from scalegrad.data import wikitext103
from scalegrad.metrics import clean_up_spaces

_WORD = re.compile(r"\S+")
_WIKITEXT_MARKS = ("<unk>", " @-@ ", " @,@ ", " @.@ ")


def looks_like_wikitext(text: str) -> bool:
    """Whether a text carries WikiText's own marks, as those of a model trained on it do.

    >>> looks_like_wikitext("the <unk> of 1999"), looks_like_wikitext("the horses of 1999")
    (True, False)
    """
    return any(mark in text for mark in _WIKITEXT_MARKS)


def embedded_blocks(words: int, wikitext_form: bool) -> Iterator[str]:
    """Consecutive blocks of `words` space-separated words from WikiText-103 test and valid, cleaned up.

    With `wikitext_form` the text keeps its headings, line breaks and marks (`<unk>`, `@-@`), to compare with models
    that write them; they add to repetition (at 100 words Rep-3 is .030 with them, .014 without). Otherwise it is
    prose: headings and `<unk>` taken out, marks and brackets closed up.

    >>> next(embedded_blocks(6, wikitext_form=False))
    'Robert Boulter is an English film,'
    """
    if words < 1:
        raise ValueError(f"words is {words}; expected at least 1 word a block")
    for split in ("test", "valid"):
        text = wikitext103(split)
        yield from _blocks(clean_up_spaces(text if wikitext_form else _prose(text)), words)


def first_words(texts: Iterable[str], words: int) -> Iterator[str]:
    """Each text cut after its first `words` space-separated words; shorter ones as they are.

    >>> list(first_words(["a b  c d", "a"], 3))
    ['a b  c', 'a']
    """
    for text in texts:
        end = len(text)
        for number, word in enumerate(_WORD.finditer(text), start=1):
            if number == words:
                end = word.end()
                break
        yield text[:end]


def _blocks(text: str, words: int) -> Iterator[str]:
    start, number = 0, 0
    for word in _WORD.finditer(text):
        if number == 0:
            start = word.start()
        number += 1
        if number == words:
            yield text[start : word.end()]
            number = 0


def _prose(text: str) -> str:
    paragraphs = (line.strip() for line in text.split("\n") if not line.startswith(" ="))
    prose = " ".join(line for line in paragraphs if line)
    for mark in (" @-@ ", " @,@ ", " @.@ "):
        prose = prose.replace(mark, mark[2])
    prose = re.sub(r"\s*<unk>", "", prose)
    prose = re.sub(r" ([;:)\]])", r"\1", prose)
    prose = re.sub(r"([(\[]) ", r"\1", prose)
    return re.sub(r'" ([^"]*) "', r'"\1"', prose.replace(" ()", ""))
