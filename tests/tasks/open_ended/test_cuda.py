"""On a GPU: the same columns as on a CPU, in float32 nearly to the digit."""

from __future__ import annotations

import copy

import pytest
import torch

from scalegrad.tasks.open_ended.corpora import find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_gpu_gives_the_same_columns(tiny, text_file):
    model, tokenizer = tiny
    corpus = find_corpus(str(text_file))
    options = {"strategies": ("greedy", "greedy,gamma=0.2"), "gamma": 0.3, "chunks": 6, "prefixes": 4}
    here = evaluate(model, tokenizer, corpus, **options)
    there = evaluate(copy.deepcopy(model).to("cuda"), tokenizer, corpus, **options)
    for part in (("language_modelling",), ("penalised", "gamma=0.2")):
        a, b = here, there
        for key in part:
            a, b = a[key], b[key]
        assert set(a) == set(b)
        for name, value in a.items():
            assert b[name] == pytest.approx(value, rel=1e-3, abs=5e-3), name  # a tie may fall to another token
    assert there["human"] == here["human"]
