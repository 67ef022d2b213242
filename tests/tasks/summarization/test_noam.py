"""The learning rates by hand, which parameter follows which, and one Adam with two groups against two Adams."""

import pytest
import torch

from scalegrad.tasks.summarization.bertsum import BertSum, load_bert, load_bert_tokenizer
from scalegrad.tasks.summarization.noam import PAPER_DECODER, PAPER_ENCODER, Noam, split_parameters, two_adams


@pytest.fixture
def model(bert_folder):
    torch.manual_seed(1)
    tokenizer = load_bert_tokenizer(bert_folder)
    return BertSum.from_bert(load_bert(bert_folder), tokenizer, decoder_layers=1, decoder_inner=16)


@pytest.mark.parametrize(
    ("noam", "step", "rate"),
    [
        (PAPER_ENCODER, 1, 0.002 / 20_000**1.5),
        (PAPER_ENCODER, 20_000, 1.4142135623730951e-05),  # .002 / √20,000
        (PAPER_ENCODER, 80_000, 7.0710678118654755e-06),  # half of it: four times the steps
        (PAPER_DECODER, 2_500, 0.0005),  # .2 · 2,500 / 10⁶
        (PAPER_DECODER, 10_000, 0.002),  # .2 / 100
        (PAPER_DECODER, 1_000_000, 0.0002),
    ],
)
def test_rates_by_hand(noam, step, rate):
    assert noam.at(step) == pytest.approx(rate, rel=1e-12)


def test_the_scheduler_counts_from_step_one(model):
    optimizer, scheduler = two_adams(Noam(0.002, 4), Noam(0.2, 2))(model)
    seen = []
    for _ in range(5):
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    encoder = [0.002 * min(s**-0.5, s * 4**-1.5) for s in range(1, 6)]
    decoder = [0.2 * min(s**-0.5, s * 2**-1.5) for s in range(1, 6)]
    assert seen == [pytest.approx([a, b], rel=1e-12) for a, b in zip(encoder, decoder, strict=True)]


def test_every_parameter_is_in_one_group(model):
    bert, others = split_parameters(model)
    names = {id(weight): name for name, weight in model.named_parameters()}
    assert {names[id(weight)].split(".")[0] for weight in bert} == {"bert"}
    assert {names[id(weight)].split(".")[0] for weight in others} == {"decoder", "lm_head"}
    trainable = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    assert sum(weight.numel() for weight in (*bert, *others)) == trainable
    assert model.decoder.embed_tokens.weight in set(others)  # the copy, not BERT's own, is the decoder's


def test_one_adam_of_two_groups_is_the_originals_two(model):
    import copy

    twin = copy.deepcopy(model)
    optimizer, scheduler = two_adams(Noam(0.01, 3), Noam(0.1, 2))(model)
    assert (optimizer.defaults["betas"], optimizer.defaults["eps"]) == ((0.9, 0.999), 1e-9)
    pair = [torch.optim.Adam(group, lr=1.0, betas=(0.9, 0.999), eps=1e-9) for group in split_parameters(twin)]
    ids, labels = torch.randint(6, 30, (2, 7)), torch.randint(6, 30, (2, 4))
    for step in range(1, 4):
        for one, noams in ((model, None), (twin, (Noam(0.01, 3), Noam(0.1, 2)))):
            one.eval()
            one.zero_grad()
            one(input_ids=ids, labels=labels).loss.backward()
            if noams is None:
                optimizer.step()
                scheduler.step()
            else:
                for adam, noam in zip(pair, noams, strict=True):
                    adam.param_groups[0]["lr"] = noam.at(step)
                    adam.step()
    for (name, ours), theirs in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6), name


def test_what_has_no_bert_is_refused():
    with pytest.raises(ValueError, match="Linear is not one"):
        split_parameters(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="warmup from 1"):
        Noam(0.1, 0)
