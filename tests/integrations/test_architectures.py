"""Many architectures: an attached loss is what loops in plain Python say of the model's own logits, or is refused."""

import math

import pytest
import torch

from scalegrad import ScaleGradLoss, sets
from scalegrad.integrations import hf
from tests import oracles
from tests.integrations import architectures as models

GAMMA = 0.3
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encoder-decoder.*:FutureWarning"),  # EncoderDecoderModel, of its own loss
]


def reference(name, model, batch):
    """From the logits of the model as it is, with its own router losses; the labels are shifted here."""
    layer = model.get_output_embeddings()
    raw = []
    watch = layer.register_forward_hook(lambda layer, inputs, scores: raw.append(scores))
    with torch.no_grad():
        own = model(**batch)
    watch.remove()
    labels = batch["labels"].tolist()
    logits = own.logits
    if logits.dtype == torch.float32:  # Mamba and others round what their output layer gives
        assert torch.equal(raw[0].float(), logits)
        logits = raw[0]
    logits = logits.tolist()
    steps = []
    for row, scores in zip(labels, logits, strict=True):
        causal = not model.config.is_encoder_decoder
        targets, context = ([*row[1:], -100], row) if causal else (row, None)
        strength = [GAMMA] * len(targets)
        steps += oracles.sequence(scores, targets, sets.Seen(), strength, "scale_grad", context=context)
    losses = [step[0] for step in steps if step is not None]
    router = sum(
        float(value) * weight
        for field, weight in (("aux_loss", models.BALANCE), ("z_loss", models.Z))
        for side in ("", "encoder_", "decoder_")
        if (value := getattr(own, f"{side}{field}", None)) is not None
    )
    return math.fsum(losses) / len(losses) + router, router


ROUTED = ("Moe", "Mixtral", "Dbrx", "Switch", "FlexOlmo", "MiniMax", "GptOss", "Phimoe", "Olmoe")
UNROUTED = ("Glm4Moe",)  # mixtures that have no router loss


@pytest.mark.parametrize("name", [*models.CAUSAL, *models.ENCODER_DECODERS])
def test_attached_equals_the_reference(name):
    """Without the self-check and with it."""
    batch = models.inputs(name)
    expected, router = reference(name, models.build(name), batch)
    assert (router > 0) == (any(part in name for part in ROUTED) and not name.startswith(UNROUTED))
    for self_check in (False, True):
        model = hf.attach(models.build(name), ScaleGradLoss(GAMMA), self_check=self_check)
        assert model(**batch).loss.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", models.UNSHIFTED)
def test_a_loss_that_does_not_shift_is_refused(name):
    model, batch = models.build(name), models.inputs(name)
    with pytest.raises(ValueError, match=r"does not (shift the labels|predict the next token)"):
        hf.attach(model, ScaleGradLoss(GAMMA))(**batch)


def test_there_are_enough():
    assert len(models.MODELS) >= 65
    assert len(models.CAUSAL) + len(models.ENCODER_DECODERS) >= 61
