"""The novel set along a sentence, against Python sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper.novel_set import (
    MEANINGS,
    draw_novel_set,
    novel_set,
    novel_set_of_ids,
    novel_set_of_tokens,
    shown,
    split_words,
)


def test_the_papers_sentence():
    result = novel_set(split_words("people who are interested in text"))
    assert result.vocab == 6
    assert [step.n_novel for step in result.steps] == [6, 5, 4, 3, 2, 1]
    assert [step.n_seen for step in result.steps] == [0, 1, 2, 3, 4, 5]
    assert all(step.is_novel for step in result.steps)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20), st.one_of(st.none(), st.integers(1, 25)))
def test_agrees_with_python_sets(ids, window):
    result = novel_set_of_ids(ids, [f"t{i}" for i in ids], vocab=9, window=window)
    for t, step in enumerate(result.steps):
        before = ids[:t] if window is None else ids[max(0, t - window) : t]
        assert set(step.seen) == set(before)
        assert len(step.seen) == step.n_seen == len(set(before))
        assert step.n_novel == 9 - len(set(before))
        assert step.is_novel == (ids[t] not in before)
        assert (step.target_id, step.target) == (ids[t], f"t{ids[t]}")


def test_seen_tokens_stand_in_order_of_first_use():
    assert novel_set(["c", "a", "c", "b", "a"]).steps[-1].seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Stop! (Now.)", ["Stop", "!", "(", "Now", ".", ")"]),
        ("it's well-known …", ["it's", "well-known", "…"]),
        ("क्या हाल?", ["क्या", "हाल", "?"]),
        ("  ", []),
    ],
)
def test_words(sentence, words):
    assert split_words(sentence) == words


def test_tokens_of_a_saved_tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    vocab = {"<unk>": 0, "the": 1, "horses": 2, "run": 3, "spare": 4}
    word_level = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="<unk>"))
    word_level.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=word_level, unk_token="<unk>").save_pretrained(tmp_path)
    result = novel_set_of_tokens("the horses run the", tmp_path)
    assert [step.target_id for step in result.steps] == [1, 2, 3, 1]
    assert [step.n_novel for step in result.steps] == [5, 4, 3, 2]
    assert [step.is_novel for step in result.steps] == [True, True, True, False]


def test_bad_tokenizers_are_told(tmp_path):
    with pytest.raises(ValueError, match="tokenizer must be a folder"):
        novel_set_of_tokens("a", tmp_path / "none")
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="holds no tokenizer that transformers can load"):
        novel_set_of_tokens("a", tmp_path)


def test_an_empty_sentence_is_told():
    with pytest.raises(ValueError, match="at least one word"):
        novel_set([])


def test_picture_has_a_cell_for_each_step_and_token():
    result = novel_set_of_ids([5, 3, 5], ["a", "b", "a"], vocab=100)
    (axes,) = draw_novel_set(result).axes
    cells = axes.collections[0].get_array()
    told = [[MEANINGS[int(code)] for code in row] for row in cells.reshape(3, 3)]
    assert told == [
        ["target, novel", "seen", "target, seen before"],  # a
        ["novel", "target, novel", "seen"],  # b
        ["novel", "novel", "novel"],  # the other 98
    ]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "98 other tokens"]
    assert {"100", "99", "98"} <= {text.get_text() for text in axes.texts}


def test_dollars_and_long_words_are_drawn_as_text():
    figure = draw_novel_set(novel_set(["$x_{$", "a" * 50]))
    figure.canvas.draw()  # would raise if read as mathematics
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["$x_{$", "a" * 19 + "…"]


def test_too_long_for_a_picture():
    with pytest.raises(ValueError, match="61 tokens; a picture holds at most 60"):
        draw_novel_set(novel_set(["a"] * 61))


def test_shown():
    assert shown("\x1b[31m x") == "\ufffd[31m␣x"
