"""Two ways that must give the same: one table, for GPT-2, Llama-style, BART and T5.

Each row of the table has two ways to train a model; each gives weights (or gradients) and a loss, and both must be the
same. Models are float64: equal means equal up to the order of a sum.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad.integrations import hf
from tests.integrations import tiny
from tests.integrations.training import attached, descend, logits_loss, packed, trained, weights

ROOT = Path(__file__).parents[2]
OBJECTIVES = {"sg": lambda: ScaleGradLoss(0.2), "ul": lambda: UnlikelihoodLoss(1.0), "mle": lambda: ScaleGradLoss(1.0)}


def by_trainer(name, loss, folder, **settings):
    """Weights and losses after two steps on the whole data set."""
    model = attached(name, loss)
    _, losses = trained(model, tiny.examples(name), folder, **settings)
    return weights(model), torch.tensor(losses)


KNOWN = {}


def whole_batch(name, loss, folder):
    """What several rows are compared with, made once."""
    key = (name, repr(loss))
    if key not in KNOWN:
        KNOWN[key] = by_trainer(name, loss, folder, batch=8)
    return KNOWN[key]


def accumulated(name, loss, folder):
    return by_trainer(name, loss, folder, batch=2, accumulation=4)


def checkpointed(name, loss, folder):
    return by_trainer(name, loss, folder, batch=8, gradient_checkpointing=True)


def fused(name, loss, folder):
    model = attached(name, loss)
    result = descend(model, tiny.padded(tiny.examples(name)))
    assert model._scalegrad.fused is True
    return result


def unfused(name, loss, folder):
    model = tiny.model(name)
    value = logits_loss(model, loss, tiny.padded(tiny.examples(name)))
    value.backward()
    return tiny.gradients(model), value.detach()


def through_compute_loss_func(name, loss, folder):
    """`Trainer(compute_loss_func=...)` on a model that Trainer counts the targets of."""
    model = tiny.model(name)
    model.loss_type = "ForCausalLM"
    _, losses = trained(model, tiny.examples(name), folder, trainer={"compute_loss_func": hf.loss(loss)})
    return weights(model), torch.tensor(losses)


def framework(name, loss, folder):
    return descend(tiny.model(name), tiny.padded(tiny.examples(name)))


def documents(name):
    """Without prompts: a collator that packs masks a document's first label, and that is all that is masked."""
    return [{"input_ids": row["input_ids"], "labels": row["input_ids"]} for row in tiny.examples(name, 4)]


def in_rows(name, loss, folder):
    return descend(attached(name, loss), tiny.padded(documents(name)))


def in_one_row(name, loss, folder):
    return descend(attached(name, loss), packed(documents(name)))


def prompted_rows(name, loss, folder):
    return descend(attached(name, loss, prompt=True), tiny.padded(tiny.examples(name)))


def prompted_in_one_row(name, loss, folder):
    return descend(attached(name, loss, prompt=True), packed(tiny.examples(name)))


# Encoder–decoders have no packing in Hugging Face, and Trainer takes the labels away from them under compute_loss_func.
# The framework's own loss is in float32 for causal models, whatever the model.
TABLE = [
    ("8 × 1 = 2 × 4 accumulated", whole_batch, accumulated, tiny.FOUR, ("sg",), 1e-12),
    ("8 × 1 = 2 × 4 accumulated", whole_batch, accumulated, ("gpt2",), ("ul",), 1e-12),
    ("gradient checkpointing", whole_batch, checkpointed, tiny.FOUR, ("sg",), 1e-12),
    ("fused = unfused", fused, unfused, tiny.FOUR, ("sg", "ul", "mle"), 1e-12),
    ("attach = compute_loss_func", whole_batch, through_compute_loss_func, tiny.CAUSAL, ("sg",), 1e-12),
    ("γ = 1 = the framework's own", fused, framework, tiny.CAUSAL, ("mle",), 1e-6),
    ("γ = 1 = the framework's own", fused, framework, ("bart", "t5"), ("mle",), 1e-12),
    ("packed = unpacked", in_rows, in_one_row, tiny.CAUSAL, ("sg", "ul"), 1e-12),
    ("packed = unpacked, prompts seen", prompted_rows, prompted_in_one_row, tiny.CAUSAL, ("sg",), 1e-12),
]
CASES = [
    pytest.param(left, right, name, objective, tolerance, id=f"{title}, {name}, {objective}")
    for title, left, right, names, objectives, tolerance in TABLE
    for name in names
    for objective in objectives
]


@pytest.mark.parametrize(("left", "right", "name", "objective", "tolerance"), CASES)
def test_equal(left, right, name, objective, tolerance, tmp_path):
    (left_tensors, left_loss), (right_tensors, right_loss) = (
        way(name, OBJECTIVES[objective](), tmp_path) for way in (left, right)
    )
    tiny.same(left_tensors, right_tensors, tolerance)
    logged = torch.float32 in (left_loss.dtype, right_loss.dtype)  # Trainer logs float32
    assert torch.allclose(left_loss.double(), right_loss.double(), rtol=0, atol=1e-6 if logged else tolerance)


def test_the_table_can_fail(tmp_path):
    """Another γ, another history, a mean of means: each is far outside of what the table allows."""
    reference, loss = fused("llama", ScaleGradLoss(0.2), tmp_path)
    for other in (ScaleGradLoss(0.21), UnlikelihoodLoss(0.2)):
        with pytest.raises(AssertionError):
            tiny.same(reference, fused("llama", other, tmp_path)[0], 1e-6)
    rows = tiny.examples("llama")
    model = attached("llama", ScaleGradLoss(0.2))
    means = torch.stack([model(**tiny.padded([row])).loss.detach() for row in rows]).mean()
    assert abs(float(means - loss)) > 1e-3
    whole, _ = descend(attached("llama", ScaleGradLoss(0.2), prompt=True), tiny.padded(rows))
    with pytest.raises(AssertionError):
        tiny.same(reference, whole, 1e-6)


# ---- two processes ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """What tests/integrations/worker.py leaves behind."""
    folder = tmp_path_factory.mktemp("two")
    environment = {
        **os.environ,
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone"]
    command = [*launch, "-m", "tests.integrations.worker", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", tiny.FOUR)
def test_one_process_equals_two(name, two_processes, tmp_path):
    """DDP: two processes of two examples, accumulated twice, are one of eight."""
    tensors, losses = whole_batch(name, ScaleGradLoss(0.2), tmp_path)
    found, logged = torch.load(two_processes / f"ddp-{name}.pt")
    tiny.same(tensors, found)
    assert torch.allclose(losses, torch.tensor(logged), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", tiny.CAUSAL)
def test_fsdp_trains_the_same_and_saves_what_loads(name, two_processes, tmp_path):
    """FSDP2: sharded weights, the loss fused with the output layer, then a plain folder with a record in its config."""
    expected, _ = whole_batch(name, ScaleGradLoss(0.2), tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(two_processes / f"fsdp-{name}", dtype=torch.float64)
    tiny.same(weights(loaded), expected)
    assert hf.attached(loaded) is None
    assert loaded.config.scalegrad["gamma"] == 0.2
