"""The Trainer of transformers, held to what a run promises: exact resume, whole checkpoints, plain NLL beside the loss.

Everything that trains (forward, backward, accumulation, mixed precision, processes, sharding) is the library's. Here is
what it leaves open: which batch comes when, when to evaluate and to save, what is logged, and when to stop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from transformers import Trainer, TrainerCallback

from scalegrad.integrations import hf
from scalegrad.integrations.labels import IGNORED
from scalegrad.runs import Run
from scalegrad.runs.progress import Progress
from scalegrad.training import checkpoints
from scalegrad.training.batches import TrainingBatches
from scalegrad.training.settings import Settings


class NotFinite(ValueError):
    """The loss or a weight became NaN or infinite; the message says where, and what is left."""


class RunTrainer(Trainer):  # type: ignore[misc]
    """One run: `batches` is what this process sees in all steps together, `make_optimizers` replaces AdamW."""

    optimizer: Any
    control: Any
    is_fsdp_enabled: bool

    def __init__(
        self, *, run: Run, settings: Settings, loss: Any, batches: TrainingBatches, batches_in_epoch: int,
        make_optimizers: Callable[..., Any] | None, **options: Any,
    ) -> None:  # fmt: skip
        self.run, self.settings, self.loss, self.batches = run, settings, loss, batches
        self.make_optimizers = make_optimizers
        self.batches_in_epoch = batches_in_epoch
        self.use_cache = getattr(options["model"].config, "use_cache", None)  # as it was; training turns it off
        super().__init__(**options)
        self.loss_is_scaled_for_ga = True  # an attached model divides by the targets of the whole step
        self.add_callback(_Pace(settings, self))
        self.sums: torch.Tensor | None = None  # nll, seen mass and number of targets since the last log
        self.pending: tuple[int, torch.Tensor] | None = None  # a loss whose value was not looked at yet
        self.clock = time.perf_counter()
        self.seconds = 0.0

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        if self.args.fsdp_plugin_args is not None and not self.is_fsdp_enabled:
            # Processes on CPUs: torch shards there too, Accelerate would leave FSDP out without a word.
            self.accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin(**self.args.fsdp_plugin_args)
            for state in (self.accelerator.state, PartialState()):
                state.distributed_type = DistributedType.FSDP
            self.is_fsdp_enabled = True

    # ---- batches -----------------------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> Any:
        return self._loader(self.train_dataset, self.batches)

    def _loader(self, data: Any, batches: Any) -> Any:
        """A loader that leaves torch's random state alone, so that looking at data never changes training."""
        return torch.utils.data.DataLoader(
            data,
            batch_sampler=batches,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
            generator=torch.Generator(),
        )

    # ---- optimizer ---------------------------------------------------------------------------------------------------

    def create_optimizer(self, model: Any = None) -> Any:
        if self.make_optimizers is not None and self.optimizer is None:
            self.optimizer, self.lr_scheduler = self.make_optimizers(self.model if model is None else model)
        return super().create_optimizer(model)

    # ---- one step ----------------------------------------------------------------------------------------------------

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        self._look_at_pending()
        loss: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)
        # Looked at when the next step is under way, so that an accelerator need not wait for it.
        self.pending = (self.state.global_step + 1, loss)
        parts = None if self.loss is None else hf.last_parts(self.model)
        if parts is not None:
            self.sums = parts.sums() if self.sums is None else self.sums + parts.sums()
        return loss

    def _look_at_pending(self) -> None:
        if self.pending is None:
            return
        (step, loss), self.pending = self.pending, None
        if not math.isfinite(loss.item()):
            raise NotFinite(f"the loss became {loss.item()} at step {step}{self._what_is_left()}")

    def _what_is_left(self) -> str:
        good = checkpoints.steps(self.run.checkpoints)
        kept = f"the last good checkpoint is that of step {good[-1]}" if good else "there is no checkpoint yet"
        rate = self._get_learning_rate()
        return f" (learning rate {rate:.3g}); {kept}. A lower learning_rate or more warmup_steps usually helps"

    def _run_epoch(self, *arguments: Any, **options: Any) -> None:
        if self.out_of_patience():  # a run that was killed after its last step
            self.control.should_training_stop = True
            return
        super()._run_epoch(*arguments, **options)

    # ---- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Plain −log p per target over the whole validation set, each target counted once."""
        rank, world = self.args.process_index, self.args.world_size
        size = self.args.per_device_eval_batch_size
        count = -(-len(self.eval_dataset) // size)
        # Sharded models need all processes in every forward pass: one without a batch left repeats the last.
        turns = [min(turn + rank, count - 1) for turn in range(0, count, world)]
        real = [turn + rank < count for turn in range(0, count, world)]
        rows = [list(range(i * size, min((i + 1) * size, len(self.eval_dataset)))) for i in turns]
        sums = [torch.zeros(2, device=self.args.device)]
        self.model.eval()
        loader = self.callback_handler.eval_dataloader = self._loader(self.eval_dataset, rows)
        with torch.no_grad(), self.compute_loss_context_manager():
            for inputs, counts in zip(loader, real, strict=True):
                inputs = self._prepare_inputs(inputs)
                summed = self.model(**inputs, num_items_in_batch=1).loss
                tokens = self._targets(inputs["labels"]).ne(IGNORED).sum()
                if counts:
                    sums.append(torch.stack([summed.float(), tokens.float()]))
                self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        total = torch.stack(sums).cpu().double().sum(0)
        if world > 1:
            total = total.to(self.args.device)
            torch.distributed.all_reduce(total)
        nll, tokens = total.tolist()
        if not tokens:
            raise ValueError("validation: it has no targets to predict")
        metrics = {"eval_loss": nll / tokens}
        if not math.isfinite(metrics["eval_loss"]):
            step = self.state.global_step
            raise NotFinite(f"the validation loss became {metrics['eval_loss']} at step {step}{self._what_is_left()}")
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _targets(self, labels: torch.Tensor) -> torch.Tensor:
        whole = self.loss is None or self._inner_config().is_encoder_decoder
        return labels if whole else labels[..., 1:]

    def _inner_config(self) -> Any:
        return self.accelerator.unwrap_model(self.model).config

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """The lowest plain validation NLL is best, and its checkpoint is kept."""
        best = self.state.best_metric
        better = best is None or metrics["eval_loss"] < best
        if better:
            self.state.best_metric = metrics["eval_loss"]
            self.state.best_global_step = self.state.global_step
            self.control.should_save = True
        elif self.out_of_patience():
            self.control.should_training_stop = self.control.should_save = True
        return better

    def out_of_patience(self) -> bool:
        """Whether the last `patience` evaluations were all no better than the best one; read from the log."""
        if self.settings.patience is None or self.state.best_global_step is None:
            return False
        since = [entry for entry in self.state.log_history if "eval_loss" in entry]
        return len([entry for entry in since if entry["step"] > self.state.best_global_step]) >= self.settings.patience

    # ---- log ---------------------------------------------------------------------------------------------------------

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "train_runtime" in logs:
            return  # a summary of this start alone; done.json has that of the run
        now = time.perf_counter()
        self.seconds += now - self.clock
        if "eval_loss" in logs:
            logs["eval_ppl"] = _exp(logs["eval_loss"])
            record = {"validation_nll": logs["eval_loss"], "validation_ppl": logs["eval_ppl"]}
        else:
            self._look_at_pending()
            logs |= self._parts(now - self.clock)
            record = dict(logs)
        self.clock = now
        super().log(logs)
        place = {"step": self.state.global_step, "epoch": self.state.epoch}
        self.run.log({**place, **record, "seconds": round(self.seconds, 3)})

    def _parts(self, seconds: float) -> dict[str, float]:
        """Plain NLL, perplexity, seen mass and speed since the last log, over all processes."""
        if self.sums is None:
            return {}
        sums, self.sums = self.sums, None
        if self.args.world_size > 1:
            torch.distributed.all_reduce(sums)
        nll, mass, tokens = sums.tolist()
        if not tokens:
            return {}
        speed = tokens / seconds if seconds else 0.0
        return {
            "nll": nll / tokens,
            "ppl": _exp(nll / tokens),
            "seen_mass": mass / tokens,
            "tokens_per_second": round(speed, 1),
        }

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def _get_output_dir(self, trial: Any) -> str:
        return str(self.run.checkpoints / checkpoints.WRITING)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        step, folder = self.state.global_step, self.run.checkpoints
        self._look_at_pending()
        self._check_weights()
        with checkpoints.explained("the checkpoint", folder, step):
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                written = checkpoints.path_of(folder / checkpoints.WRITING, step)
                checkpoints.seal(written, checkpoints.path_of(folder, step))
                checkpoints.tidy(folder, {step, self.state.best_global_step or step})
        self.accelerator.wait_for_everyone()

    def _check_weights(self) -> None:
        """No checkpoint with NaN in it: a gradient can break weights after a good loss."""
        weights = [parameter.detach() for parameter in self.model.parameters() if parameter.requires_grad]
        local = [weight.to_local() if hasattr(weight, "to_local") else weight for weight in weights]
        finite = torch.stack([weight.isfinite().all() for weight in local])
        if not finite.all().item():
            raise NotFinite(f"a weight became NaN or infinite at step {self.state.global_step}{self._what_is_left()}")

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Weights and configuration; no pickle of the arguments, and `use_cache` as the model had it."""
        config = self._inner_config()
        training, config.use_cache = config.use_cache, self.use_cache
        try:
            super()._save(output_dir, state_dict)
        finally:
            config.use_cache = training
        (Path(output_dir or self.args.output_dir) / "training_args.bin").unlink(missing_ok=True)

    def save_whole(self, folder: str) -> None:
        """The model as one, whatever parts of it processes hold and however checkpoints keep them."""
        if self.is_fsdp_enabled:
            state = self.accelerator.get_state_dict(self.model)
            if self.args.should_save:
                self._save(folder, state)
        else:
            self.save_model(folder)

    # ---- selection ---------------------------------------------------------------------------------------------------

    def select(self) -> int:
        """Give the model the weights of the best step, or leave it at the last where nothing was evaluated."""
        best: int | None = self.state.best_global_step
        if best is not None and best != self.state.global_step:
            self.state.best_model_checkpoint = str(checkpoints.path_of(self.run.checkpoints, best))
            self._load_best_model()
        return int(self.state.global_step if best is None else best)


class _Pace(TrainerCallback):  # type: ignore[misc]
    """What the loss needs to know before a step; when to log, evaluate and save, and how many epochs are gone."""

    def __init__(self, settings: Settings, trainer: RunTrainer) -> None:
        self.settings, self.trainer = settings, trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.trainer.loss is not None:
            self.trainer.loss.step = state.global_step  # γ may follow a schedule

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step, last = state.global_step, state.global_step >= state.max_steps
        if self.trainer.eval_dataset is not None:
            control.should_evaluate = last or step % self.settings.steps_to_evaluate(state.max_steps) == 0
        every = self.settings.save_every or self.settings.steps_to_evaluate(state.max_steps)
        control.should_save = last or step % every == 0
        # A checkpoint starts a new average, so that a resumed run logs what an uninterrupted one does.
        control.should_log = step == 1 or step % self.settings.log_every == 0
        control.should_log |= control.should_evaluate or control.should_save
        taken = step * args.gradient_accumulation_steps * args.world_size
        state.epoch = round(taken / self.trainer.batches_in_epoch, 4)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Reports what is trained, with the last figures, its step and all steps; each validation by its batches."""

    def __init__(self, progress: Progress, what: str) -> None:
        self.progress, self.what = progress, what
        self.figures: dict[str, str] = {}
        self.validated = 0  # batches of this validation

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        known = {"nll": "NLL {:.3f}", "seen_mass": "seen {:.1%}", "eval_ppl": "validation ppl {:.2f}"}
        self.figures |= {key: text.format(logs[key]) for key, text in known.items() if key in logs}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.progress(" · ".join([self.what, *self.figures.values()]), state.global_step, state.max_steps)

    def on_prediction_step(self, args: Any, state: Any, control: Any, eval_dataloader: Any, **_: Any) -> None:
        self.validated += 1
        self.progress(f"{self.what}: validating (batches)", self.validated, len(eval_dataloader))

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.validated = 0
