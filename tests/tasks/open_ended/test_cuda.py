"""On a GPU: the same columns as on a CPU, in float32 nearly to the digit."""

from __future__ import annotations

import copy

import pytest
import torch

from scalegrad.tasks.open_ended.config import Evaluation
from scalegrad.tasks.open_ended.corpora import find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate
from tests.tasks.open_ended.conftest import figures

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_gpu_gives_the_same_columns(tiny, text_file):
    model, tokenizer = tiny
    corpus = find_corpus(str(text_file))
    options = Evaluation(strategy=("greedy", "greedy,gamma=0.2"), calibrate=0.3, chunks=6, prefixes=4)
    here = list(evaluate(model, tokenizer, corpus, options))
    there = list(evaluate(copy.deepcopy(model).to("cuda"), tokenizer, corpus, options))
    for penalty in (None, "gamma=0.2"):
        a, b = (figures(parts, penalty=penalty) for parts in (here, there))
        assert set(a) == set(b)
        for name, value in a.items():
            assert b[name] == pytest.approx(value, rel=1e-3, abs=5e-3), name  # a tie may fall to another token
    assert figures(there, human=True) == figures(here, human=True)
