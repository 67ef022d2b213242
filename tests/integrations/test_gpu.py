"""Attached models on a GPU: the kernels give what logits give, and nothing of ours waits for the device."""

import warnings

import pytest
import torch

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad.integrations import hf
from scalegrad.integrations.attachment import Attachment
from tests.integrations import tiny
from tests.integrations.training import descend, logits_loss

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
LOSSES = {"sg": lambda: ScaleGradLoss(0.2), "ul": lambda: UnlikelihoodLoss(1.0)}


def on_gpu(name):
    batch = tiny.padded(tiny.examples(name))
    return tiny.model(name, dtype=torch.float32).cuda(), {key: value.cuda() for key, value in batch.items()}


@pytest.mark.parametrize("objective", LOSSES)
@pytest.mark.parametrize("name", [*tiny.FOUR, "gemma2", "cohere", "bert2bert"])
def test_fused_equals_logits(name, objective):
    model, batch = on_gpu(name)
    found, loss = descend(hf.attach(model, LOSSES[objective]()), batch)
    assert model._scalegrad.fused is True
    value = logits_loss(hf.detach(model), LOSSES[objective](), batch)
    value.backward()
    assert loss.item() == pytest.approx(value.item(), rel=1e-5)
    tiny.same(found, tiny.gradients(model), 2e-4)  # three products in TF32 or not, as torch likes


@pytest.mark.parametrize("name", tiny.FOUR)
def test_nothing_waits(name, monkeypatch):
    """From hidden states to loss and parts, after the first step has looked and the kernels are compiled."""
    model, batch = on_gpu(name)
    hf.attach(model, ScaleGradLoss(0.2))
    items = (batch["labels"] >= 0).sum()
    model(**batch, num_items_in_batch=items).loss.backward()
    linear = Attachment.linear

    def watched(self, *arguments):
        with warnings.catch_warnings(action="ignore"):  # it says that it is a prototype
            torch.cuda.set_sync_debug_mode("error")
        try:
            return linear(self, *arguments)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(Attachment, "linear", watched)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(**batch, num_items_in_batch=items).loss
    loss.backward()
    assert hf.last_parts(model).nll.device.type == "cuda"
    assert loss.item() > 0
