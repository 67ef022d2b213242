"""Run by `torchrun` with two processes: `worker.py FOLDER` trains tiny models in parallel and keeps the results.

`Trainer` with DDP for all four models; then FSDP2, in a loop of its own since Accelerate has FSDP for GPUs only.
"""

import sys
import warnings
from pathlib import Path

import torch
import torch.distributed
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

from scalegrad import ScaleGradLoss
from scalegrad.integrations import first_batch, hf
from tests.integrations import tiny
from tests.integrations.training import trained, weights


def with_ddp(name, folder):
    model = hf.attach(tiny.model(name), ScaleGradLoss(0.2))
    trainer, losses = trained(model, tiny.examples(name), folder / "run", batch=2, accumulation=2)
    assert model._scalegrad.fused is True
    if trainer.is_world_process_zero():
        torch.save((weights(model), losses), folder / f"ddp-{name}.pt")


def with_fsdp(name, folder):
    """Each layer a unit; untied models as Accelerate groups them, with the output layer and the last norm in one."""
    model = hf.attach(tiny.model(name), ScaleGradLoss(0.2))
    layers = model.transformer.h if name == "gpt2" else model.model.layers
    for layer in layers:
        fully_shard(layer)
    if name == "llama":
        fully_shard(model.get_input_embeddings())
        fully_shard([model.model.norm, model.lm_head])
    fully_shard(model)
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    examples = tiny.examples(name)
    items = sum(int((row["labels"][1:] >= 0).sum()) for row in examples)
    for _ in range(2):
        for start in range(0, len(examples), 2 * world):
            mine = examples[start + 2 * rank :][:2]
            loss = model(**tiny.padded(mine), num_items_in_batch=items).loss
            (loss * world).backward()  # FSDP takes the mean over the processes
        optimizer.step()
        optimizer.zero_grad()
    assert model._scalegrad.fused is True
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        model.save_pretrained(folder / f"fsdp-{name}", state_dict=whole)


def without_memory():
    """One process has no memory for the self-check: both leave it out, or they would wait for each other for ever."""
    model = hf.attach(tiny.model("gpt2"), ScaleGradLoss(0.2))
    fully_shard(model)
    if torch.distributed.get_rank() == 1:
        first_batch.free_memory = lambda device: 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model(**tiny.padded(tiny.examples("gpt2"))).loss.backward()
    assert any("no memory for the self-check" in str(entry.message) for entry in caught)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    for name in tiny.FOUR:
        with_ddp(name, folder)
    for name in tiny.CAUSAL:
        with_fsdp(name, folder)
    without_memory()
    torch.distributed.destroy_process_group()
