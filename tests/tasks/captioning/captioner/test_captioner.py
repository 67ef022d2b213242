"""The captioner against a loop that shares no code with it; masks, caches, beams, blocking, scheduled sampling."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from scalegrad import ScaleGradLoss, decoding
from scalegrad.integrations import hf
from scalegrad.tasks.captioning.captioner import Captioner
from scalegrad.tasks.captioning.dataset import regions_batch

LABELS = torch.tensor([[5, 9, 9, 4, 2], [7, 5, 2, -100, -100], [22, 3, 5, 5, 2]])


def oracle_logits(model, regions, ids):
    """Scores after each of `ids` for one image, by torch's own LSTMCell and a sum over regions written out."""
    state = {name: value.double() for name, value in model.state_dict().items()}
    width = model.config.hidden_size

    def cell(weight_in, weight_hidden, bias):
        lstm = nn.LSTMCell(weight_in.shape[1], width, dtype=torch.float64)
        order = [0, 1, 3, 2]  # ours: input, forget, output, candidate; torch: input, forget, candidate, output

        def arranged(value):
            return torch.cat([value.chunk(4)[place] for place in order])

        with torch.no_grad():
            lstm.weight_ih.copy_(arranged(weight_in))
            lstm.weight_hh.copy_(arranged(weight_hidden))
            lstm.bias_ih.copy_(arranged(bias))
            lstm.bias_hh.zero_()
        return lstm

    from_said, from_asked = state["state_gates.weight"].split(width, dim=1)
    reads = torch.cat([state["word_gates.weight"], state["image_gates.weight"], from_said], dim=1)
    asks = cell(reads, from_asked, state["word_gates.bias"])
    from_seen_and_asked, from_itself = state["language_gates.weight"].split([2 * width, width], dim=1)
    says = cell(from_seen_and_asked, from_itself, state["language_gates.bias"])

    def layer(name, value):
        return state[f"encoder.{name}.weight"] @ value + state[f"encoder.{name}.bias"]

    regions = regions.double()
    values = [torch.relu(layer("regions", region)) for region in regions]
    image = torch.relu(layer("image", regions.mean(dim=0)))
    nothing = torch.zeros(1, width, dtype=torch.float64)
    asked, asked_cell, said, said_cell = nothing, nothing, nothing, nothing
    scores = []
    for word in ids:
        known = torch.relu(state["words.weight"][word])
        asked, asked_cell = asks(torch.cat([known[None], image[None], said], dim=1), (asked, asked_cell))
        query = state["query.weight"] @ asked[0]
        energy = [state["score.weight"][0] @ torch.tanh(layer("keys", value) + query) for value in values]
        share = torch.softmax(torch.stack(energy), dim=0)
        seen = sum(weight * value for weight, value in zip(share, values, strict=True))
        said, said_cell = says(torch.cat([seen[None], asked], dim=1), (said, said_cell))
        scores.append(state["head.weight"] @ said[0] + state["head.bias"])
    return torch.stack(scores).detach()


def test_scores_are_those_of_the_equations(make_captioner, images):
    """Three images of 1, 4 and 100 regions in one batch: each as if it were alone."""
    model = make_captioner()
    read = model.prepare_decoder_input_ids_from_labels(LABELS)
    with torch.no_grad():
        found = model(**regions_batch(images), labels=LABELS).logits
    for row, regions in enumerate(images):
        torch.testing.assert_close(found[row].double(), oracle_logits(model, regions, read[row]), atol=1e-5, rtol=1e-5)


def test_padding_with_garbage_changes_nothing(make_captioner, images):
    model = make_captioner()
    batch = regions_batch(images)
    poisoned = {
        **batch,
        "region_features": batch["region_features"].masked_fill(batch["region_mask"][..., None] == 0, 1e4),
    }
    with torch.no_grad():
        found, expected = (model(**inputs, labels=LABELS).logits for inputs in (poisoned, batch))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_loss_is_the_mean_over_targets(make_captioner, images):
    model = make_captioner()
    with torch.no_grad():
        out = model(**regions_batch(images), labels=LABELS)
    picked = [
        -torch.log_softmax(out.logits[row, step].double(), dim=-1)[LABELS[row, step]]
        for row in range(3)
        for step in range(5)
        if LABELS[row, step] >= 0
    ]
    assert out.loss.item() == pytest.approx(float(sum(picked) / 13), abs=1e-5)


# ---- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regions", ["one image", "unequal images"])
def test_gradients_against_finite_differences(make_captioner, images, regions):
    """In float64, of every parameter, with and without a mask."""
    model = make_captioner(sharpness=1.0, dtype=torch.float64).train()
    inputs = regions_batch(images[1:2] if regions == "one image" else images[:2])
    inputs["region_features"] = inputs["region_features"].double()
    labels = LABELS[: len(inputs["region_features"]), :3]
    names = [name for name, _ in model.named_parameters()]
    batch = {**inputs, "decoder_input_ids": model.prepare_decoder_input_ids_from_labels(labels)}

    def scores(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (), batch).logits

    assert torch.autograd.gradcheck(scores, tuple(model.parameters()), fast_mode=True)


# ---- generate --------------------------------------------------------------------------------------------------------


def greedy_oracle(model, regions, longest, ends=2):
    ids = [1]
    while len(ids) <= longest:
        ids.append(int(oracle_logits(model, regions, torch.tensor(ids))[-1].argmax()))
        if ids[-1] == ends:
            return ids[1:-1]
    return ids[1:]


def test_greedy_search_in_a_batch(make_captioner, images):
    model = make_captioner(seed=3)
    found = decoding.generate(model, regions_batch(images), "greedy", new_tokens=9)
    assert found == [greedy_oracle(model, regions, 9) for regions in images]
    assert len({tuple(ids) for ids in found}) > 1  # the images matter


STRATEGIES = ("beam=3", "beam=4,gnmt=1.0", "top_k=5", "top_p=0.9", "min_p=0.1", "typical=0.9", "greedy,soft_block=3")
STRATEGIES += ("greedy,block=2,gamma=0.3", "greedy,gnmt=0.6")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_in_a_batch_as_alone(make_captioner, images, strategy):
    model = make_captioner(seed=4)
    options = {"new_tokens": 8, "seed": 1}
    together = decoding.generate(model, regions_batch(images), strategy, keys=["a", "b", "c"], **options)
    alone = [
        decoding.generate(model, regions_batch([regions]), strategy, keys=[key], **options)[0]
        for regions, key in zip(images, "abc", strict=True)
    ]
    assert together == alone


def test_beam_search_finds_a_likelier_text(make_captioner, images):
    """Our search and Hugging Face's reorder the LSTMs' state: both end with the sum the model itself gives."""
    model = make_captioner(seed=5, sharpness=2.0)
    inputs = regions_batch(images)
    arguments = decoding.generation_arguments(model, inputs, "beam=5", new_tokens=6)
    found = model.generate(**inputs, **arguments, return_dict_in_generate=True)
    theirs = model.generate(
        **inputs, num_beams=5, max_new_tokens=6, length_penalty=0.0, early_stopping="never",
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    torch.testing.assert_close(found.sequences_scores, theirs.sequences_scores, atol=1e-5, rtol=1e-5)
    for row, regions in enumerate(images):
        ids = found.sequences[row]
        log_p = torch.log_softmax(oracle_logits(model, regions, ids[:-1]), dim=-1)
        kept = ids[1:] != 0
        total = log_p.gather(1, ids[1:, None])[:, 0][kept].sum()
        assert float(found.sequences_scores[row]) == pytest.approx(float(total), abs=1e-4)


def test_soft_trigram_blocking_by_hand(fixed_captioner):
    """5 has .81, 6 has .13, 7 has .06. "5 5 5" a second time: .81/4 > .13; a third: .81/16 < .13, so 6. After "5 6 5
    5": .81/16 for 5, .13/4 for 6, and .06 for 7, which is most."""
    model = fixed_captioner({5: 0.81, 6: 0.13, 7: 0.06})
    inputs = regions_batch([torch.zeros(1, 6)])
    assert decoding.generate(model, inputs, "greedy", new_tokens=8) == [[5] * 8]
    found = decoding.generate(model, inputs, "greedy,soft_block=3", new_tokens=8)
    assert found == [[5, 5, 5, 5, 6, 5, 5, 7]]


def test_saved_and_loaded(make_captioner, images, tmp_path):
    model = make_captioner(seed=6)
    model.config.regions_from = "scenes"
    model.save_pretrained(tmp_path)
    again = Captioner.from_pretrained(tmp_path).eval()
    inputs = regions_batch(images)
    with torch.no_grad():
        assert torch.equal(again(**inputs, labels=LABELS).logits, model(**inputs, labels=LABELS).logits)
    assert again.config.regions_from == "scenes"
    again.resize_token_embeddings(30)
    with torch.no_grad():
        assert again(**inputs, labels=LABELS).logits.shape[-1] == 30


def test_what_is_missing_is_named(make_captioner):
    model = make_captioner()
    with pytest.raises(ValueError, match="region_features must be given"):
        model(labels=LABELS)
    with pytest.raises(ValueError, match="decoder_input_ids or labels"):
        model(region_features=torch.zeros(1, 1, 6))


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_attached_objective(make_captioner, images, gamma):
    """The loss of an attached model is ScaleGrad on its own scores, the gold labels being what is seen."""
    model = make_captioner().train()
    expected = copy.deepcopy(model)
    inputs = regions_batch(images)
    loss = hf.attach(model, ScaleGradLoss(gamma))(**inputs, labels=LABELS, num_items_in_batch=7).loss
    logits = expected(**inputs, decoder_input_ids=expected.prepare_decoder_input_ids_from_labels(LABELS)).logits
    wanted = ScaleGradLoss(gamma)(logits, LABELS, num_items=7)
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    loss.backward()
    wanted.backward()
    for (name, mine), other in zip(model.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-5, rtol=1e-4, msg=name)
    hf.detach(model)
    assert decoding.generate(model, inputs, new_tokens=3)


def test_scheduled_sampling_reads_its_own_words_and_sees_the_gold_ones(make_captioner, images):
    """A model sure of 5 reads 5 at every step; γ's set is still that of the labels."""
    model = make_captioner().train()
    with torch.no_grad():
        model.head.bias[5] = 60.0
    inputs = regions_batch(images)
    read = torch.tensor([[1, 5, 5, 5, 5]] * 3)
    logits = model(**inputs, decoder_input_ids=read).logits
    model.scheduled_sampling = 1.0
    loss = hf.attach(model, ScaleGradLoss(0.5))(**inputs, labels=LABELS).loss
    assert loss.item() == pytest.approx(ScaleGradLoss(0.5)(logits, LABELS).item(), rel=1e-5)
    seen_as_read = ScaleGradLoss(0.5)(logits, LABELS, context=read)
    assert abs(loss.item() - seen_as_read.item()) > 0.01
    model.eval()
    with torch.no_grad():  # none of it in evaluation
        gold = model(**inputs, labels=LABELS).loss
    plain = hf.detach(model)(**inputs, labels=LABELS).loss
    assert gold.item() == pytest.approx(plain.item(), rel=1e-5)


def test_scheduled_sampling_changes_as_many_words_as_asked(make_captioner):
    """Of 2,000 rows a quarter, give or take four standard deviations (2 %), read another word at the second step."""
    model = make_captioner().train()
    with torch.no_grad():
        model.head.bias[5] = 60.0
    inputs = {"region_features": torch.ones(2000, 1, 6), "decoder_input_ids": torch.tensor([[1, 9]]).expand(2000, 2)}
    gold = model(**inputs).logits[:, 1]
    torch.manual_seed(0)
    model.scheduled_sampling = 0.25
    changed = (model(**inputs).logits[:, 1] - gold).abs().amax(dim=1) > 1e-4
    assert 0.21 < float(changed.float().mean()) < 0.29


def test_dropout_is_on_in_training_only(make_captioner, images):
    model = make_captioner(dropout=0.5)
    inputs = regions_batch(images)
    with torch.no_grad():
        first, again = (model(**inputs, labels=LABELS).loss for _ in range(2))
        model.train()
        dropped, otherwise = (model(**inputs, labels=LABELS).loss for _ in range(2))
    assert first == again
    assert dropped != otherwise
