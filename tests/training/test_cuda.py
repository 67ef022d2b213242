"""Training on a GPU, in bfloat16 as is usual there; runs where there is one."""

from dataclasses import replace

import pytest
import torch

from scalegrad.runs import Run
from scalegrad.training import Settings, fit
from tests.training.test_fit import Stop, StopAt, log, weights

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

SETTINGS = Settings(
    max_steps=8, batch=3, accumulation=2, learning_rate=3e-3, evaluate_every=3, save_every=2, tracker=()
)


@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_it_learns_and_resumes(gpt2, data, new_run, dtype):
    settings = replace(SETTINGS, dtype=dtype)
    whole = fit(gpt2(), "sg=0.2", *data, new_run("whole"), settings)
    values = [line["validation_nll"] for line in log(whole.run) if "validation_nll" in line]
    assert values[-1] < values[0] < 4.0  # log 40 is 3.7
    with pytest.raises(Stop):
        fit(gpt2(), "sg=0.2", *data, new_run("cut"), settings, callbacks=[StopAt(5)])
    cut = fit(gpt2(7), "sg=0.2", *data, new_run("cut"), settings)
    for name, value in weights(whole.run).items():
        torch.testing.assert_close(weights(cut.run)[name], value, rtol=0.0, atol=1e-6, msg=name)
    assert all(value.dtype == torch.float32 for value in weights(cut.run).values())
    assert isinstance(cut.run, Run)
    assert next(whole.model.parameters()).is_cuda


def test_mixed_precision_is_near_the_full_one(gpt2, data, new_run):
    full, mixed = (
        fit(gpt2(), "sg=0.2", *data, new_run(dtype), replace(SETTINGS, dtype=dtype, max_steps=1))
        for dtype in ("float32", "bfloat16")
    )
    assert mixed.validation_nll == pytest.approx(full.validation_nll, rel=0.01)
