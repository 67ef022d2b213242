"""Human text at the length of what it is held against."""

import pytest

from scalegrad.metrics import longest_loops, repetition
from scalegrad.results.measure.human import embedded_blocks


@pytest.mark.parametrize("wikitext_form", [True, False])
@pytest.mark.parametrize("words", [7, 120])
def test_blocks_have_the_words_asked_for(words, wikitext_form):
    blocks = list(embedded_blocks(words, wikitext_form))
    assert {len(block.split()) for block in blocks} == {words}
    assert len(blocks) == pytest.approx((412_700 if wikitext_form else 376_200) / words, rel=0.001)


def test_the_two_forms_differ_as_documented():
    forms = {form: list(embedded_blocks(100, form)) for form in (True, False)}
    assert round(repetition(forms[True])["rep_3"], 3) == 0.030
    assert round(repetition(forms[False])["rep_3"], 3) == 0.014
    prose = " ".join(forms[False])
    assert not any(mark in prose for mark in ("<unk>", "@-@", " = =", "\n", "( "))


def test_human_prose_hardly_ever_loops():
    loops = longest_loops(list(embedded_blocks(100, wikitext_form=False)))
    assert (len(loops), sum(loop is not None for loop in loops)) == (3761, 5)  # "yeah, yeah, yeah", lists of names


def test_words_must_be_some():
    with pytest.raises(ValueError, match="words is 0; expected at least 1"):
        next(embedded_blocks(0, wikitext_form=True))
