"""The paper's cuts, and a corpus encoded in pieces equal to one encoded whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.data import blocks, completion_blocks, encode_corpus, gpt2_tokenizer, language_modelling_chunks
from scalegrad.data.readers import Latest

TOKENIZER = gpt2_tokenizer()


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(blocks, "_PIECE", 40)
    monkeypatch.setattr(blocks, "_MARGIN", 20)


@settings(max_examples=60, deadline=None)
@given(text=st.lists(st.text("ab ,.\n<>é", max_size=30), max_size=12).map("\n".join))
def test_corpus_is_the_joined_lines(text):
    lines = [line + "\n" for line in text.split("\n")]
    assert encode_corpus(text, TOKENIZER).tolist() == TOKENIZER.encode(" ".join(lines).strip()).ids


@pytest.mark.usefixtures("small_pieces")
def test_pieces_give_the_ids_of_the_whole():
    text = "".join(f" line {n} of a text , with words \n \n" for n in range(50))
    calls = []

    class Counting:
        def encode(self, text, add_special_tokens):
            calls.append(text)
            return TOKENIZER.encode(text, add_special_tokens=add_special_tokens)

    got = encode_corpus(text, Counting()).tolist()
    whole = text.replace("\n", "\n ").strip()
    assert got == TOKENIZER.encode(whole).ids
    assert whole not in calls  # it was cut


@pytest.mark.usefixtures("small_pieces")
def test_tokenizer_that_looks_across_lines_gets_the_text_whole():
    class LengthTokenizer:
        def encode(self, text, add_special_tokens):
            return [len(text)]

    text = "word word word \n" * 100
    assert encode_corpus(text, LengthTokenizer()).tolist() == [len(text.replace("\n", "\n ").strip())]


def test_transformers_tokenizer_gives_the_same_ids():
    transformers = pytest.importorskip("transformers")
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=gpt2_tokenizer())
    text = " = Title = \n \n Some text , and more . \n"
    assert encode_corpus(text, wrapped).tolist() == encode_corpus(text, TOKENIZER).tolist()


def test_empty_corpus_has_no_ids():
    assert encode_corpus(" \n \n", TOKENIZER).tolist() == []


def test_prefixes_are_fifty_tokens_six_a_chunk():
    ids = np.arange(301 * 2 + 300, dtype=np.int32)
    prefixes = completion_blocks(ids)
    assert prefixes[:, 0].tolist() == [0, 50, 100, 150, 200, 250, 301, 351, 401, 451, 501, 551]
    assert 300 not in prefixes  # the 301st token of a chunk belongs to no prefix, and an incomplete chunk to none
    assert prefixes.max() == 600


def test_blocks_of_any_length():
    """As many as fit into a chunk of 301; a longer block makes a chunk of its own, whose last token is dropped too."""
    ids = np.arange(301 * 2, dtype=np.int32)
    assert completion_blocks(ids, 70)[:, 0].tolist() == [0, 70, 140, 210, 301, 371, 441, 511]
    assert completion_blocks(ids, 299)[:, 0].tolist() == [0, 301]
    assert completion_blocks(ids, 400)[:, [0, -1]].tolist() == [[0, 399]]
    assert completion_blocks(ids, 602).shape == (0, 602)
    with pytest.raises(ValueError, match="length is 0"):
        completion_blocks(ids, 0)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"ids has shape \(2, 3\)"):
        language_modelling_chunks(np.zeros((2, 3), dtype=np.int32))
    with pytest.raises(ValueError, match="targets is 0"):
        language_modelling_chunks(np.zeros(3, dtype=np.int32), targets=0)


def test_a_corpus_is_encoded_once_for_each_tokenizer(monkeypatch):
    """A process that trains many models encodes the corpus once; what it is given is its own to change."""
    monkeypatch.setattr(blocks, "_ENCODED", Latest(6))
    calls = []
    encode = blocks._encode
    monkeypatch.setattr(blocks, "_encode", lambda *given: calls.append(1) or encode(*given))
    first = encode_corpus("one two one \n", TOKENIZER)
    first[0] = 7
    assert encode_corpus("one two one \n", gpt2_tokenizer()).tolist() == [505, 734, 530]  # another object of the same
    assert len(calls) == 1
    other = gpt2_tokenizer()
    other.add_tokens(["two"])
    assert encode_corpus("one two one \n", other).tolist() != [505, 734, 530]
    for number in range(10):
        encode_corpus(f"text {number}", TOKENIZER)
    assert len(blocks._ENCODED) == 6
