"""Prose out of Wikipedia markup and wrapped books, spaced as WikiText is."""

import pytest

from paper.prose import as_wikitext, book_prose, wikipedia_prose, wikitext_spacing
from scalegrad.data import wikitext103

FILLER = " and so on" * 10 + "."


def page(title, body):
    return f'<page><title>{title}</title><text xml:space="preserve">{body}</text></page>'


@pytest.mark.parametrize(
    ("markup", "prose"),
    [
        ("'''Bees''' [[fly|are flying]] [[here]]", "Bees are flying here"),
        ("Nested {{a {{b}} c}}templates", "Nested templates"),
        ("See [http://example.org the page] now", "See the page now"),
        ("A picture [[Image:x.png|thumb|of [[bees]]]]of it", "A picture of it"),
        ("Noted&lt;ref&gt;by someone&lt;/ref&gt; already", "Noted already"),
        ("Escaped twice&amp;mdash;like this", "Escaped twice—like this"),
    ],
)
def test_markup_goes(markup, prose):
    assert list(wikipedia_prose(page("Bees", markup + FILLER))) == [prose + FILLER]


@pytest.mark.parametrize("line", ["* a list", "== Heading ==", ": indented", "| a table", "short."])
def test_what_is_not_prose_is_dropped(line):
    text = line if line == "short." else line + FILLER
    assert list(wikipedia_prose(page("Bees", text))) == []


@pytest.mark.parametrize("title", ["Wikipedia:Rules", "Talk:Bees", "Template:Fact", "User talk:Someone"])
def test_only_articles(title):
    assert list(wikipedia_prose(page(title, "A paragraph" + FILLER))) == []


def test_a_redirect_is_no_article():
    assert list(wikipedia_prose(page("Bee", "#REDIRECT [[Bees]]" + FILLER))) == []


def test_books_are_unwrapped_and_verse_dropped():
    prose = [
        "It was a dark night, and the two of them had not yet come home",
        "from the long road that leads to the sea.",
    ]
    verse = [
        "The night was dark,",
        "the road was long,",
        "and so they sang",
        "the old sea song,",
        "all of the night long.",
    ]
    assert list(book_prose(["CHAPTER THE FIRST", "", *prose, "", *verse, ""])) == [" ".join(prose)]


@pytest.mark.parametrize(
    ("plain", "spaced"),
    [
        ("He said: “No!”", 'He said : " No ! "'),
        ("a well-known 1,500.5 m race", "a well @-@ known 1 @,@ 500 @.@ 5 m race"),
        ("Dr. Who left. He came back.", "Dr. Who left . He came back ."),
        ("the clubs' fans don't", "the clubs ' fans don 't"),
        ("J. K. Rowling (born 1965), who", "J. K. Rowling ( born 1965 ) , who"),
    ],
)
def test_spacing(plain, spaced):
    assert wikitext_spacing(plain) == spaced


def test_spacing_gives_back_what_wikitext_has():
    """Joined as people write it and spaced again, most sentences of WikiText are as they were."""
    lines = [line.strip() for line in wikitext103("valid").split("\n") if len(line) > 200][:200]
    plain = [
        line.replace(" @-@ ", "-").replace(" @,@ ", ",").replace(" @.@ ", ".").replace(" , ", ", ").replace(" . ", ". ")
        .removesuffix(" .") + ("." if line.endswith(" .") else "")
        for line in lines
    ]  # fmt: skip
    whole = sum(wikitext_spacing(ours) == theirs for ours, theirs in zip(plain, lines, strict=True))
    assert whole / len(lines) > 0.5


def test_the_corpus_has_wikitexts_form():
    assert as_wikitext(["One, two.", "Three."]) == " One , two . \n Three . \n"
