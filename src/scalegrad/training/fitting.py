"""`fit`: from a model, an objective and data to a selected model in a run's folder."""

from __future__ import annotations

import math
import os
import pickle
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from scalegrad import objectives
from scalegrad.extras import need
from scalegrad.integrations import hf
from scalegrad.models.memory import out_of_memory
from scalegrad.objectives import Objective
from scalegrad.runs import Run, rows_of
from scalegrad.runs.environment import forget_peak, give_back_memory, peak_bytes
from scalegrad.training import checkpoints
from scalegrad.training.batches import BatchSampler, Pad, TrainingBatches, batches_in_epoch, shuffled
from scalegrad.training.saving import save_model
from scalegrad.training.settings import Settings

if TYPE_CHECKING:
    from scalegrad.training.trainer import RunTrainer

Optimizers = Callable[[Any], tuple[torch.optim.Optimizer, Any]]


@dataclass(frozen=True)
class Fitted:
    """What `fit` leaves: the selected model, and what is in done.json."""

    model: Any
    run: Run
    steps: int  # that were trained
    selected_step: int
    validation_nll: float | None  # plain, of the selected step
    validation_ppl: float | None
    seconds: float
    peak_memory_mib: float | None  # of the GPU, else of the process; None where the system does not tell
    parallelism: str  # "NO" for one process; "MULTI_GPU", "FSDP", "DEEPSPEED", … as Accelerate calls it


def fit(
    model: Any,
    objective: Objective | str | None,
    train: Any,
    validation: Any | None,
    run: Run,
    settings: Settings,
    *,
    collate: Callable[[list[Any]], dict[str, Any]] | None = None,
    tokenizer: Any = None,
    prompt: bool = False,
    loss_options: Mapping[str, Any] | None = None,
    optimizers: Optimizers | None = None,
    batch_sampler: BatchSampler | None = None,
    callbacks: Iterable[Any] = (),
) -> Fitted:
    """Train `model` and leave the one with the lowest plain validation NLL in `run.model_path`.

    A run that was stopped goes on from its last checkpoint and ends with the weights it would have had; one that is
    finished is only loaded.

    Args:
        model: a Hugging Face model with an output layer (causal, encoder–decoder, or a PEFT model around one).
        objective: `Objective`, or its text: "mle", "ul=1.0", "sg=0.2"; None trains the model's own loss (a mean over
            `labels` that are not -100), for what generates no text.
        train: map-style data set of dicts that the model's forward takes, `labels` among them.
        validation: another; None selects the last step.
        run: where everything goes.
        settings: how to train.
        collate: examples → batch; `Pad` by default.
        tokenizer: saved with the model.
        prompt: what is no target counts as seen too (`hf.attach`).
        loss_options: options of the loss, such as `label_smoothing` or `discourage`.
        optimizers: model → (optimizer, scheduler stepped once a step), in place of AdamW.
        batch_sampler: (data set, seed of an epoch) → lists of indices, in place of shuffled batches of `batch`.
        callbacks: `transformers.TrainerCallback`s.
    """
    objective = objectives.parse(objective) if isinstance(objective, str) else objective
    need("transformers", extra="train")
    sampler = batch_sampler or shuffled(settings.batch)
    epoch, world = batches_in_epoch(train, sampler, settings.seed), int(os.environ.get("WORLD_SIZE", "1"))
    steps = settings.steps(epoch, world)
    arguments = _arguments(run, settings, steps)
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several GPUs are for torchrun, not for threads of one process
    need("accelerate", extra="train").PartialState().wait_for_everyone()  # before anyone looks at the run's files
    if run.finished:
        return _finished(model, run)
    peak_known = _forget_peak()  # a process may have done other work before
    loss = None if objective is None else objective.loss(**(loss_options or {}))
    if loss is not None:
        hf.attach(model, loss, prompt=prompt)
    total = steps * settings.accumulation
    trainer = _new_trainer(
        run=run,
        settings=settings,
        loss=loss,
        batches=TrainingBatches(train, sampler, settings.seed, total, arguments.process_index, world),
        batches_in_epoch=epoch,
        make_optimizers=optimizers,
        model=model,
        args=arguments,
        data_collator=collate or Pad(getattr(tokenizer, "pad_token_id", None) or 0),
        train_dataset=train,
        eval_dataset=validation,
        callbacks=list(callbacks),
    )
    with _without_bars():
        _train(trainer, run, settings)
        return _finish(trainer, tokenizer, run, peak_known)


def _new_trainer(**options: Any) -> RunTrainer:
    from scalegrad.training.trainer import RunTrainer  # loads transformers

    try:
        return RunTrainer(**options)
    except RuntimeError as error:
        if "to be installed" not in str(error):
            raise
        raise ValueError(f"trackers: {error}") from None


@contextmanager
def _without_bars() -> Iterator[None]:
    """The library draws a bar for every file it writes."""
    logging = need("transformers", extra="train").utils.logging
    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()


def _arguments(run: Run, settings: Settings, steps: int) -> Any:
    """The settings in the words of transformers."""
    precision = settings.mixed_precision()
    warmup = settings.warmup_steps if settings.warmup_steps >= 1 else math.ceil(settings.warmup_steps * steps)
    return need("transformers", extra="train").TrainingArguments(
        output_dir=str(run.checkpoints),
        max_steps=steps,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.evaluation_batch or settings.batch,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=int(warmup),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        seed=settings.seed,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        gradient_checkpointing=settings.gradient_checkpointing,
        torch_compile=settings.compile,
        fsdp=True if settings.fsdp else None,
        fsdp_config=settings.fsdp,
        deepspeed=settings.deepspeed,
        dataloader_num_workers=settings.workers,
        dataloader_pin_memory=torch.accelerator.is_available(),
        use_cpu=not torch.accelerator.is_available(),  # said outright, processes on CPUs and bf16 there are no surprise
        report_to=[name for name in settings.tracker if name not in ("tensorboard", "none")],
        run_name=run.path.name,
        logging_strategy="no",  # RunTrainer says when
        eval_strategy="no",
        save_strategy="no",
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        disable_tqdm=True,
        log_level="error",
        log_level_replica="error",
    )


def _train(trainer: RunTrainer, run: Run, settings: Settings) -> None:
    hf_library = need("transformers", extra="train")
    trainer.remove_callback(hf_library.PrinterCallback)
    good = checkpoints.steps(run.checkpoints)
    if run.writes:
        _prepare_folder(run, good)
    trainer.accelerator.wait_for_everyone()
    if good:
        trainer.seconds = next((entry["seconds"] for entry in reversed(run.metrics()) if "seconds" in entry), 0.0)
    if "tensorboard" in settings.tracker and run.writes:
        trainer.add_callback(_tensorboard(run, good[-1] if good else 0))
    try:
        trainer.train(resume_from_checkpoint=str(checkpoints.path_of(run.checkpoints, good[-1])) if good else None)
    except (pickle.UnpicklingError, need("safetensors", extra="train").SafetensorError) as error:
        reason = " ".join(str(error).split(". ")[0].split())
        where = checkpoints.path_of(run.checkpoints, good[-1]) if good else run.checkpoints
        raise ValueError(
            f"the checkpoint {where} cannot be loaded ({reason}); without it the run starts earlier"
        ) from None
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise ValueError(_memory_sentence(trainer, settings)) from None


def _prepare_folder(run: Run, good: list[int]) -> None:
    """Back to the last whole checkpoint: later log lines and broken checkpoints go."""
    run.rewind(good[-1] if good else 0)
    checkpoints.tidy(run.checkpoints, set(good))


def _tensorboard(run: Run, step: int) -> Any:
    """Curves under tensorboard/; a resumed run replaces what came after its checkpoint."""
    need("tensorboard", extra="train")
    writer = need("torch.utils.tensorboard", extra="train").SummaryWriter(
        str(run.path / "tensorboard"), purge_step=step + 1
    )
    return need("transformers.integrations", extra="train").TensorBoardCallback(writer)


def _memory_sentence(trainer: RunTrainer, settings: Settings) -> str:
    step = trainer.state.global_step + 1
    if settings.batch > 1:
        half = settings.batch // 2
        rest = -(-settings.batch * settings.accumulation // half)
        advice = f"lower batch from {settings.batch} to {half} (accumulation {rest} keeps the step's size)"
    else:
        advice = "use shorter sequences or a smaller model"
    further = "" if settings.gradient_checkpointing else ", or turn gradient_checkpointing on"
    return f"out of memory at step {step}: {advice}{further}"


def _finish(trainer: RunTrainer, tokenizer: Any, run: Run, peak_known: bool) -> Fitted:
    """Select, save, and say that the run is finished, in this order."""
    step = trainer.select()
    model = save_model(trainer, tokenizer, run, step)
    nll = trainer.state.best_metric
    results = {
        "steps": trainer.state.global_step,
        "selected_step": step,
        "validation_nll": nll,
        "validation_ppl": None if nll is None else math.exp(min(nll, 700)),
        "seconds": round(trainer.seconds, 3),
        "peak_memory_mib": _peak_memory() if peak_known else None,
        "parallelism": trainer.accelerator.distributed_type.value,
    }
    run.add(rows_of(_figures(run, results), **{**run.about(), "step": step}))
    run.finish(results)
    if run.writes:
        checkpoints.tidy(run.checkpoints, set())
    trainer.accelerator.wait_for_everyone()
    return Fitted(model if trainer.loss is None else hf.detach(model), run, **results)


def _figures(run: Run, results: Mapping[str, Any]) -> dict[str, float]:
    """The figures of the training itself; its time is without the first step, in which kernels may be compiled."""
    logged = [entry for entry in run.metrics() if entry.get("tokens_per_second")]
    first = logged[0]["seconds"] if logged and logged[0]["step"] == 1 else 0.0
    figures = {
        "validation_ppl": results["validation_ppl"],
        "train_seconds": results["seconds"] - first,
        "tokens_per_second": statistics.median(entry["tokens_per_second"] for entry in logged) if logged else None,
        "peak_memory_mib": results["peak_memory_mib"],
    }
    return {name: value for name, value in figures.items() if value is not None}


def _forget_peak() -> bool:
    """Let the peak of memory start from here; whether it can be told in the end what this run took."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        return True
    give_back_memory()
    return forget_peak()


def _peak_memory() -> float:
    """MiB at most since `_forget_peak`: of the accelerator where there is one, else of the process."""
    most = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else peak_bytes()
    return round(most / 2**20, 1)


def _finished(model: Any, run: Run) -> Fitted:
    """A finished run's model, in place of the one given."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    trained = type(inner).from_pretrained(str(run.model_path))
    return Fitted(trained, run, **run.load("done"))
