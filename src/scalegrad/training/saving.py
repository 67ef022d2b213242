"""The selected model as a folder that `from_pretrained` loads, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalegrad.integrations.hf import write_card
from scalegrad.runs import Run
from scalegrad.training import checkpoints

if TYPE_CHECKING:
    from scalegrad.training.trainer import RunTrainer


def save_model(trainer: RunTrainer, tokenizer: Any, run: Run, step: int) -> Any:
    """Write model/, and give back the model that is in it.

    Of a PEFT model the adapter goes into adapter/, and model/ has it merged in; where processes hold parts of the
    weights (FSDP, DeepSpeed) it stays an adapter.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    with checkpoints.explained("the model", run.checkpoints, step):
        if hasattr(model, "merge_and_unload") and not (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
            _save_folder(run.path / "adapter", run, trainer, trainer.save_whole)
            model = model.merge_and_unload()
            _save_folder(run.model_path, run, trainer, partial(_save_merged, model) if run.writes else None, tokenizer)
        else:
            _save_folder(run.model_path, run, trainer, trainer.save_whole, tokenizer)
    return model


def _save_merged(model: Any, folder: str) -> None:
    model.save_pretrained(folder)
    write_card(Path(folder), model.config.scalegrad)  # an attached model does so by itself: the adapter did


def _save_folder(
    path: Path, run: Run, trainer: RunTrainer, save: Callable[[str], Any] | None, tokenizer: Any = None
) -> None:
    """`save` on all processes that have to take part, then the tokenizer and the folder's name by the first."""
    unfinished = path.with_name(f".{path.name}")
    try:
        if run.writes:
            shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed here
        trainer.accelerator.wait_for_everyone()
        if save is not None:
            save(str(unfinished))
        trainer.accelerator.wait_for_everyone()
        if run.writes:
            _complete(unfinished, tokenizer)
            checkpoints.replace_folder(unfinished, path)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    trainer.accelerator.wait_for_everyone()


def _complete(folder: Path, tokenizer: Any) -> None:
    if not list(folder.glob("*.safetensors")):
        raise ValueError(
            "no weights were saved: the processes hold parts of them and their configuration keeps these apart "
            "(DeepSpeed: stage3_gather_16bit_weights_on_model_save); the last checkpoint has them"
        )
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))
