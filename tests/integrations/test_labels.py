"""Shifting and what counts as seen: by hand on small batches, and against the oracle's loops."""

import pytest
import torch

from scalegrad import ScaleGradLoss, UnlikelihoodLoss, sets
from scalegrad.integrations.labels import causal_batch, encoder_decoder_batch
from tests import oracles
from tests.integrations import tiny
from tests.integrations.training import attached

X = -100


def ids(*rows):
    return torch.tensor(rows)


def test_the_first_label_is_no_target_and_is_seen():
    batch = causal_batch(ids([5, 6, 7], [8, 9, X]))
    assert batch.targets.tolist() == [[6, 7, X], [9, X, X]]
    assert batch.context.tolist() == [[5, 6, 7], [8, 9, X]]
    assert batch.segments is None
    assert batch.source is None


@pytest.mark.parametrize(
    ("prompt", "seen"),
    [(False, [[X, X, 7, 8], [X, X, X, 6]]), (True, [[5, 6, 7, 8], [-1, -1, 5, 6]])],
)
def test_a_prompt_counts_when_asked_and_padding_never(prompt, seen):
    """The second row is padded on the left."""
    batch = causal_batch(
        ids([X, X, 7, 8], [X, X, X, 6]),
        input_ids=ids([5, 6, 7, 8], [0, 0, 5, 6]),
        attention_mask=ids([1, 1, 1, 1], [0, 0, 1, 1]),
        prompt=prompt,
    )
    assert batch.context.tolist() == seen
    assert batch.targets.tolist() == [[X, 7, 8, X], [X, X, 6, X]]


def test_packed_documents_are_kept_apart_and_get_their_first_token_back():
    """Two documents without a prompt, then one whose prompt is masked: only the first two begin with a seen token."""
    batch = causal_batch(
        ids([X, 6, 7, X, 9, X, X, 4]),
        input_ids=ids([5, 6, 7, 8, 9, 2, 3, 4]),
        position_ids=ids([0, 1, 2, 0, 1, 0, 1, 2]),
    )
    assert batch.context.tolist() == [[5, 6, 7, 8, 9, X, X, 4]]
    assert batch.segments.tolist() == [[1, 1, 1, 2, 2, 3, 3, 3]]
    assert batch.targets.tolist() == [[6, 7, X, 9, X, X, 4, X]]


def test_a_document_of_one_token_lends_nothing_to_the_next():
    batch = causal_batch(ids([X, X, 7]), input_ids=ids([5, 6, 7]), position_ids=ids([0, 0, 1]))
    assert batch.context.tolist() == [[X, 6, 7]]
    assert batch.segments.tolist() == [[1, 2, 2]]


def test_positions_serve_every_row():
    labels = ids([5, 6, 7], [8, 9, 4])
    assert causal_batch(labels, position_ids=ids([0, 1, 0])).segments.tolist() == [[1, 1, 2], [1, 1, 2]]


def test_labels_that_were_shifted_before():
    batch = causal_batch(None, shift_labels=ids([6, 7, X]), num_items=2)
    assert batch.targets.tolist() == [[6, 7, X]]
    assert batch.context is None
    assert batch.num_items == 2
    assert causal_batch(ids([5, 6, 7]), shift_labels=ids([6, 7, X])).context.tolist() == [[5, 6, 7]]


def test_a_decoder_is_not_shifted_and_its_source_counts_when_asked():
    given = {"input_ids": ids([3, 4, 0]), "attention_mask": ids([1, 1, 0])}
    plain = encoder_decoder_batch(ids([6, 7]), **given)
    assert plain.targets.tolist() == [[6, 7]]
    assert plain.source is None
    assert encoder_decoder_batch(ids([6, 7]), prompt=True, **given).source.tolist() == [[3, 4, -1]]


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="prompt=True needs input_ids"):
        causal_batch(ids([5, 6]), prompt=True)
    with pytest.raises(ValueError, match="prompt=True needs input_ids"):
        encoder_decoder_batch(ids([5, 6]), prompt=True)
    with pytest.raises(ValueError, match="labels must be given"):
        causal_batch(None)


# ---- the whole way, against loops ------------------------------------------------------------------------------------


def by_hand(logits, row, objective, strength, *, causal, prompt, token_set):
    """One example's loss by the oracle, from the model's logits."""
    labels = row["labels"].tolist()
    inputs = row["input_ids"].tolist()
    if causal:
        targets, context = [*labels[1:], X], inputs if prompt else labels
        found = oracles.sequence(logits, targets, token_set, [strength] * len(targets), objective, context=context)
    else:
        source = inputs if prompt else None
        found = oracles.sequence(logits, labels, token_set, [strength] * len(labels), objective, source=source)
    return [step for step in found if step is not None]


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("loss", [ScaleGradLoss(0.3), UnlikelihoodLoss(0.7)], ids=["sg", "ul"])
@pytest.mark.parametrize("name", tiny.FOUR)
def test_attached_against_the_oracle(name, loss, prompt):
    """A padded batch; what each example loses is what loops in plain Python say of the model's own logits."""
    model = attached(name, loss, prompt=prompt).eval()
    rows = tiny.examples(name, 4)
    objective, strength = ("scale_grad", 0.3) if isinstance(loss, ScaleGradLoss) else ("unlikelihood", 0.7)
    steps = []
    for row in rows:
        with torch.no_grad():
            logits = model(**tiny.padded([row])).logits[0].tolist()
        causal = not model.config.is_encoder_decoder
        steps += by_hand(logits, row, objective, strength, causal=causal, prompt=prompt, token_set=sets.Seen())
    value = model(**tiny.padded(rows)).loss.item()
    assert value == pytest.approx(sum(step[0] for step in steps) / len(steps), abs=1e-12)
    parts = model._scalegrad.parts
    assert parts.nll.item() == pytest.approx(sum(step[2] for step in steps) / len(steps), abs=1e-12)
    assert parts.seen_mass.item() == pytest.approx(sum(step[3] for step in steps) / len(steps), abs=1e-12)
    assert parts.tokens.item() == len(steps)
    with torch.no_grad():
        plain = model(**tiny.padded(rows)).loss.item()
    assert plain == pytest.approx(parts.nll.item(), abs=1e-12)
