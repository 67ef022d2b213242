"""Figures with and without a start symbol: the same targets, and the symbol itself counts for nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from scalegrad.data import encode_corpus
from scalegrad.tasks.open_ended.config import Evaluation
from scalegrad.tasks.open_ended.corpora import cut_corpus, find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate
from tests.tasks.open_ended.conftest import CONTEXT, figures, tiny_model
from tests.tasks.open_ended.test_evaluation import GAMMA, oracle

WINDOWS = (16, 32, 128)


@pytest.mark.parametrize(("asked", "used"), [("auto", True), ("yes", True), ("no", False)])
def test_the_columns_are_those_of_the_loop(with_start, text_file, asked, used):
    model, tokenizer, _ = with_start
    corpus = find_corpus(str(text_file))
    parts = list(evaluate(model, tokenizer, corpus, Evaluation(strategy=(), calibrate=GAMMA, chunks=1, start=asked)))
    chunk = encode_corpus(corpus.text, tokenizer).tolist()[:1025]
    expected = oracle(model, [chunk], GAMMA, WINDOWS, (tokenizer.bos_token_id,) if used else ())
    del expected["nats"]
    for name, value in expected.items():
        assert figures(parts)[name] == pytest.approx(value, rel=2e-5), name
    assert parts[0].settings["window"] == 1024  # with and without: the same targets
    assert parts[0].settings["start"] == ("<s>" if used else None)
    assert any("<s>" in note for note in parts[0].notes) == used


def test_figures_with_it_and_without_are_never_mixed(with_start, text_file):
    model, tokenizer, _ = with_start
    corpus = find_corpus(str(text_file))
    both = []
    for start in ("auto", "no"):
        options = Evaluation(strategy=("greedy,gamma=0.2",), chunks=1, prefixes=1, new_tokens=40, start=start)
        both.append(list(evaluate(model, tokenizer, corpus, options)))
    for penalty in (None, "gamma=0.2"):
        ppl = [figures(parts, penalty=penalty)["ppl"] for parts in both]
        assert ppl[0] != pytest.approx(ppl[1], rel=1e-4)
    assert figures(both[0], human=True) == figures(both[1], human=True)
    assert both[0][0].settings != both[1][0].settings  # a run measures it anew


def test_a_context_that_is_full_gives_the_symbol_its_place(with_start, text_file):
    _, tokenizer, _ = with_start
    model = tiny_model(len(tokenizer))
    part, _ = evaluate(model, tokenizer, find_corpus(str(text_file)), Evaluation(strategy=(), chunks=1))
    assert part.settings["window"] == CONTEXT - 1
    with pytest.raises(ValueError, match="the model's context of 160"):
        evaluate(model, tokenizer, find_corpus(str(text_file)), Evaluation(chunks=0, prefixes=1, new_tokens=110))


def test_continuations_come_after_it(with_start, text_file, tmp_path):
    model, tokenizer, _ = with_start
    corpus = find_corpus(str(text_file))
    list(evaluate(model, tokenizer, corpus, Evaluation(chunks=0, prefixes=1, new_tokens=7), samples=tmp_path))
    text = [tokenizer.bos_token_id, *encode_corpus(corpus.text, tokenizer).tolist()[:50]]
    head = tokenizer.decode(text, skip_special_tokens=True)
    for _ in range(7):
        with torch.no_grad():
            scores = model(torch.tensor([text])).logits[0, -1]
        scores[0] = -torch.inf
        text.append(int(scores.argmax()))
    record = json.loads((tmp_path / "prose.txt.greedy.jsonl").read_text())
    assert record["prefix"] == head
    assert record["continuation"] == tokenizer.decode(text, skip_special_tokens=True)[len(head) :]


@pytest.mark.parametrize("new_tokens", [1, 7, 40, 299, 301, 700])
def test_any_number_of_new_tokens(with_start, text_file, new_tokens):
    """Human text is cut to the same length; only the model's context limits it."""
    model, tokenizer, _ = with_start
    corpus = find_corpus(str(text_file))
    parts = list(evaluate(model, tokenizer, corpus, Evaluation(chunks=0, prefixes=1, new_tokens=new_tokens)))
    assert {row.new_tokens for part in parts for row in part.rows} == {new_tokens}
    assert figures(parts, "texts", human=True)["n_texts"] == (new_tokens >= 40)  # Rep-n needs some words
    ids = encode_corpus(corpus.text, tokenizer)
    (block,) = cut_corpus(corpus, tokenizer, new_tokens=new_tokens, chunks=0, prefixes=1).blocks
    assert np.array_equal(block, ids[:new_tokens])
