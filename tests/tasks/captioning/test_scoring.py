"""Paragraphs and their scores: length normalisation of greedy search by hand, and β chosen on validation."""

from __future__ import annotations

import math

import pytest
import torch

from scalegrad import decoding
from scalegrad.tasks.captioning.dataset import Example
from scalegrad.tasks.captioning.scoring import choose_beta, describe, repetitiveness, score
from scalegrad.tasks.captioning.vocabulary import build_tokenizer

# ids: 0-3 special, then "." (the most frequent), "a", "dog"
TOKENIZER = build_tokenizer(["a dog."] * 5 + ["a."] * 5 + ["."])


def ending(probability_of_end, model, beta, longest=60):
    """How many words the fixed captioner says before it ends."""
    inputs = {"region_features": torch.zeros(1, 1, 66)}
    return len(decoding.generate(model, inputs, f"greedy,gnmt={beta}" if beta else "greedy", new_tokens=longest)[0])


@pytest.mark.parametrize(("end", "beta"), [(0.52, 0.0), (0.48, 0.0), (0.6, 0.5), (0.6, 1.0), (0.7, 1.0), (0.8, 1.0)])
def test_length_normalised_end(fixed_captioner, end, beta):
    """A model that ends with probability `end` at every step, against the inequality evaluated step by step."""
    model = fixed_captioner(7, {2: end, 5: 1 - end})
    total, length = 0.0, 1
    while length <= 60:
        ends = (total + math.log(end)) / ((5 + length) / 6) ** beta
        goes_on = (total + math.log(1 - end)) / ((6 + length) / 6) ** beta
        if ends >= goes_on:
            break
        total, length = total + math.log(1 - end), length + 1
    assert ending(end, model, beta) == min(length - 1, 60)


def test_larger_beta_writes_longer(fixed_captioner):
    """End .55: at once, with β = ½ too. End .51 and β = 1: never, for (1 − (5+L)/(6+L))·|S| outgrows ln .51/.49."""
    model = fixed_captioner(7, {2: 0.55, 5: 0.45})
    assert [ending(0.55, model, beta) for beta in (0.0, 0.5)] == [0, 0]
    assert ending(0.51, fixed_captioner(7, {2: 0.51, 5: 0.49}), 1.0) == 60


def test_beta_is_the_one_of_the_highest_validation_score(fixed_captioner, few_scenes):
    """The reference is one word, then the end; a model that would end at once is held back by a large enough β only."""
    model = fixed_captioner(7, {2: 0.505, 5: 0.495})
    wanted = zip(few_scenes, ["a a a a a", "dog"], strict=False)
    references = [Example(item.image_id, item.regions, text) for item, text in wanted]
    strategy, found = choose_beta(model, TOKENIZER, references, decoding.Greedy(soft_block=3), betas=(0.0, 1.0))
    assert found["0"] == 0.0
    assert found["1"] > 0.0
    assert strategy == decoding.Greedy(soft_block=3, gnmt=1.0)
    _, again = choose_beta(model, TOKENIZER, references[1:] * 2, decoding.Greedy(), betas=(0.0, 0.1))
    assert again == {"0": 0.0, "0.1": 0.0}


def test_describe_in_batches(fixed_captioner, few_scenes):
    model = fixed_captioner(7, {2: 0.1, 4: 0.3, 5: 0.3, 6: 0.3})
    regions, keys = [item.regions for item in few_scenes], [item.image_id for item in few_scenes]
    whole = describe(model, TOKENIZER, regions, "top_p=0.99", keys=keys, seed=3)
    assert describe(model, TOKENIZER, regions, "top_p=0.99", keys=keys, seed=3, batch=5) == whole
    assert len(set(whole)) > 6


def test_scores_by_hand():
    """CIDEr-D of two texts that match and one that shares nothing: 1000, 1000, 0; Rep-n of lower-cased words."""
    references = ["The red bus stops here now.", "two cats sleep on it today", "one bird flies over me again"]
    texts = ["the red bus stops here now.", "two cats sleep on it today", "no no no no no no"]
    found = score(texts, references)
    assert found["cider"] == pytest.approx(2000 / 3)
    assert found["rep_1"] == pytest.approx((5 / 6) / 3)
    assert found["words"] == pytest.approx((7 + 6 + 6) / 3)
    assert score([text.upper() for text in texts], references)["rep_1"] == found["rep_1"]
    assert repetitiveness(["The dog. The dog. The dog."])["rep_3"] == pytest.approx(1 - 3 / 7)
