"""Prose to learn to write from: a Wikipedia dump or plain books, as running text with WikiText's spacing.

Meant for pre-training a model that is then fine-tuned on WikiText: markup, lists, tables and headings go, and what is
left is tokenised as WikiText is, so that both look alike.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

_SHORTEST = 75  # characters: below it a paragraph is a caption, a heading or a line of a list

# ---- Wikipedia ------------------------------------------------------------------------------------------------------

_PAGE = re.compile(r"<title>(.*?)</title>.*?<text[^>]*>(.*?)</text>", re.DOTALL)
_NAMESPACE = re.compile(r"\A(?:Wikipedia|Template|Image|Category|Portal|Help|MediaWiki|User|\w+ talk|Talk):")
_BLOCKS = re.compile(
    r"<!--.*?-->|<(ref|math|table|div|gallery|pre|code|nowiki|timeline)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE
)
_INNER = (re.compile(r"\{\{[^{}]*\}\}"), re.compile(r"\{\|[^{}]*?\|\}", re.DOTALL))  # innermost first, then again
_PICTURE = re.compile(r"\[\[(?:Image|File|Category|[a-z-]{2,12}):(?:[^\[\]]|\[\[[^\[\]]*\]\])*\]\]")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_WEB = re.compile(r"\[(?:https?|ftp)://\S+\s*([^\]]*)\]")
_TAG = re.compile(r"<[^<>]*>")
_NOT_PROSE = re.compile(r"\A[*#:;=|!{}\[<&\s]|\|\||__|https?://")


def wikipedia_prose(dump: str) -> Iterator[str]:
    """The paragraphs of the articles of a Wikipedia XML dump, such as enwik8, without markup.

    >>> page = "<title>Bees</title><text>'''Bees''' are [[insect|insects]]{{fact}} that fly " + "on and " * 12
    >>> [paragraph] = wikipedia_prose(page + "on.\\n* a list</text>")
    >>> paragraph[:36]
    'Bees are insects that fly on and on '
    """
    for title, body in _PAGE.findall(dump):
        if _NAMESPACE.match(title) or body[:9].upper() == "#REDIRECT":
            continue
        yield from _article(html.unescape(html.unescape(body)))  # "&amp;mdash;": the dump escapes once more


def _article(text: str) -> Iterator[str]:
    text = _BLOCKS.sub("", text)
    for inner in _INNER:
        before = ""
        while before != text:
            before, text = text, inner.sub("", text)
    text = _LINK.sub(r"\1", _PICTURE.sub("", text))
    text = _TAG.sub("", _WEB.sub(r"\1", text)).replace("'''", "").replace("''", "")
    for line in text.split("\n"):
        if not _NOT_PROSE.search(line) and _is_sentence(line):
            yield " ".join(line.split())


# ---- books ----------------------------------------------------------------------------------------------------------


def book_prose(lines: Iterable[str]) -> Iterator[str]:
    """The paragraphs of plain-text books: wrapped lines are joined, headings, verse and lists of contents dropped.

    >>> wrapped = "It was _late_ when the two of them came home, and later when"
    >>> list(book_prose(["CHAPTER I", "", wrapped, "they went to bed.", "", "A short line,"]))
    ['It was late when the two of them came home, and later when they went to bed.']
    """
    paragraph: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            paragraph.append(line.strip())
            continue
        joined = " ".join(paragraph).replace("_", "")
        # Verse and tables keep their lines short; prose is wrapped near the margin.
        wrapped = len(paragraph) < 3 or sum(map(len, paragraph[:-1])) / (len(paragraph) - 1) > 45
        if wrapped and _is_sentence(joined) and not joined.isupper():
            yield joined
        paragraph = []


def _is_sentence(text: str) -> bool:
    return len(text) >= _SHORTEST and text.rstrip("\"'”’) ")[-1:] in tuple(".!?:")


# ---- WikiText's spacing ---------------------------------------------------------------------------------------------

_STRAIGHT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "—": " — ", "…": "..."})
_SPACING = (
    (re.compile(r"--+"), " — "),
    (re.compile(r"(?<=\w)-(?=\w)"), " @-@ "),
    (re.compile(r"(?<=\d),(?=\d{3})"), " @,@ "),
    (re.compile(r"(?<=\d)\.(?=\d)"), " @.@ "),
    (re.compile(r"(?<=\w)'(?=\w)"), " '"),  # club 's, didn 't
    (re.compile(r"([\"()\[\];:!?–$%&/]|\.\.\.)"), r" \1 "),
    (re.compile(r"(?<!@),(?!@)"), " , "),
    (re.compile(r"(?<=[^\s.@])\.(?=[\s\"')\]]*$)"), " ."),  # the last one
    (re.compile(r"(?<=[a-z0-9)\"'])\.(?=\s+[\"'(]*\s*[A-Z])"), " ."),  # the end of a sentence, not of an initial
    (re.compile(r"\b(Mr|Mrs|Ms|Dr|St|Capt|Col|Gen|Rev|vs|No) \.(?=\s)"), r"\1."),
    (re.compile(r"(?<=\s)'(?=\w{3,})|(?<=\w)'(?=\s|$)"), " ' "),
)


def wikitext_spacing(paragraph: str) -> str:
    """`paragraph` spaced as WikiText is: punctuation stands alone, hyphens and separators inside words as @-@, @,@.

    >>> wikitext_spacing("Mr. Lee's well-known “tune” sold 1,500 copies; he didn't stop.")
    'Mr. Lee \\'s well @-@ known " tune " sold 1 @,@ 500 copies ; he didn \\'t stop .'
    """
    paragraph = paragraph.translate(_STRAIGHT)
    for pattern, spaced in _SPACING:
        paragraph = pattern.sub(spaced, paragraph)
    return " ".join(paragraph.split())


def as_wikitext(paragraphs: Iterable[str]) -> str:
    """A corpus in WikiText's form: one paragraph a line, each between spaces.

    >>> as_wikitext(["One, two."])
    ' One , two . \\n'
    """
    return "".join(f" {wikitext_spacing(paragraph)} \n" for paragraph in paragraphs)
