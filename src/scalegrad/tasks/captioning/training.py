"""Training a captioner: the published optimiser, schedule and scheduled sampling, through the shared `fit`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from scalegrad.extras import need
from scalegrad.objectives import Objective
from scalegrad.runs import Run
from scalegrad.tasks.captioning.dataset import Paragraphs, by_length, collate
from scalegrad.training import Fitted, Settings, fit


@dataclass(frozen=True)
class Recipe:
    """How a captioner is built and trained; the defaults are the published ones.

    Adam, its rate multiplied by `decay` every `decay_epochs`, rising from 0 over the first `warmup_epochs`, and with
    `fades` going to 0 as √(1 − share done); gradients clamped to ±`clamp`. The probability that a word read in training
    is the model's own rises by `sampling_step` every `sampling_epochs`, to `sampling_most` (scheduled sampling; what
    counts as seen stays the gold prefix). Words that occur `more_than` so many times are known.
    """

    hidden_size: int = 512
    attention_size: int = 512
    dropout: float = 0.5
    more_than: int = 4
    epochs: int = 30
    batch: int = 10
    learning_rate: float = 5e-4
    decay: float = 0.8
    decay_epochs: float = 3
    warmup_epochs: float = 0.0
    fades: bool = False
    clamp: float = 0.1
    sampling_step: float = 0.05
    sampling_epochs: int = 5
    sampling_most: float = 0.25
    evaluations: int = 30
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, not {self.epochs}")

    def rate(self, epoch: float) -> float:
        """The factor on the learning rate after so many epochs.

        >>> Recipe().rate(2.9), Recipe().rate(3), round(Recipe().rate(7), 6)
        (1.0, 0.8, 0.64)
        >>> short = Recipe(epochs=4, decay=1.0, warmup_epochs=1.0, fades=True)
        >>> short.rate(0), short.rate(0.5) == (1 - 0.5 / 4) ** 0.5 / 2, short.rate(3)
        (0.0, True, 0.5)
        """
        rate = float(self.decay ** math.floor(epoch / self.decay_epochs))
        if self.fades:
            rate *= math.sqrt(max(0.0, 1 - epoch / self.epochs))
        return rate * min(1.0, epoch / self.warmup_epochs) if self.warmup_epochs else rate

    def steps(self, examples: int) -> int:
        """Steps of the whole run on so many examples.

        >>> Recipe(epochs=2, batch=10).steps(25)
        6
        """
        return self.epochs * math.ceil(examples / self.batch)

    def sampling(self, epoch: float) -> float:
        """The probability that the model reads its own word, after so many epochs.

        >>> Recipe().sampling(4.9), Recipe().sampling(5), Recipe().sampling(100)
        (0.0, 0.05, 0.25)
        """
        return min(self.sampling_most, self.sampling_step * (epoch // self.sampling_epochs))


PAPER = Recipe()
# The drawn scenes on a CPU: a small model, a few epochs, chosen on validation scenes.
SCENES = Recipe(
    hidden_size=128,
    attention_size=64,
    dropout=0.1,
    epochs=6,
    batch=32,
    learning_rate=5e-3,
    decay=1.0,
    warmup_epochs=0.4,
    fades=True,
    sampling_step=0.0,
    evaluations=6,
)

# The same on a GPU, in a few minutes for nine runs side by side.
SCENES_LARGE = replace(SCENES, hidden_size=512, attention_size=256, dropout=0.3, batch=128, learning_rate=2e-3)


class ClampedAdam(torch.optim.Adam):
    """Adam on gradients clamped to ±`clamp`, value by value."""

    def __init__(self, parameters: Iterable[Any], lr: float, clamp: float) -> None:
        super().__init__(parameters, lr=lr)
        self.clamp = clamp

    def step(self, closure: Any = None) -> Any:
        """One step; gradients are clamped first."""
        gradients = [
            weight.grad for group in self.param_groups for weight in group["params"] if weight.grad is not None
        ]
        if gradients:
            torch._foreach_clamp_min_(gradients, -self.clamp)
            torch._foreach_clamp_max_(gradients, self.clamp)
        return super().step(closure)


def optimizers(recipe: Recipe, steps_in_epoch: int) -> Callable[[Any], tuple[torch.optim.Optimizer, Any]]:
    """What `fit` asks for: model -> (optimizer, scheduler stepped once a step)."""

    def make(model: Any) -> tuple[torch.optim.Optimizer, Any]:
        optimizer = ClampedAdam(model.parameters(), recipe.learning_rate, recipe.clamp)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: recipe.rate(step / steps_in_epoch))
        return optimizer, schedule

    return make


def sampling_callback(recipe: Recipe, steps_in_epoch: int) -> Any:
    """Sets `model.scheduled_sampling` before every step, from the step alone: a resumed run samples as much."""
    base = need("transformers", extra="caption").TrainerCallback

    class Sampling(base):  # type: ignore[misc, valid-type]
        def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            model.scheduled_sampling = recipe.sampling(state.global_step / steps_in_epoch)

    return Sampling()


def settings_of(recipe: Recipe, steps_in_epoch: int, seed: int) -> Settings:
    """The recipe in the words of `fit`."""
    steps = recipe.epochs * steps_in_epoch
    return Settings(
        max_steps=steps,
        batch=recipe.batch,
        learning_rate=recipe.learning_rate,
        schedule="constant",  # the scheduler comes with the optimizer
        weight_decay=0.0,
        max_grad_norm=0.0,
        evaluate_every=max(1, steps // recipe.evaluations),
        evaluation_batch=max(recipe.batch, 50),
        log_every=max(1, steps // 20),
        patience=recipe.patience,
        seed=seed,
        dtype="float32",  # an LSTM this small is bound by its steps, not by its products
        tracker=("none",),
    )


def train_captioner(
    objective: Objective,
    train: Paragraphs,
    validation: Paragraphs,
    tokenizer: Any,
    run: Run,
    recipe: Recipe,
    *,
    seed: int = 0,
    regions_from: str = "",
    callbacks: Iterable[Any] = (),
) -> Fitted:
    """Train a captioner on `train`, select it on the plain validation loss, leave it in `run.model_path`.

    `regions_from` names what made the features, so that `scalegrad caption IMAGE` can make them again.
    """
    from scalegrad.tasks.captioning.captioner import Captioner, CaptionerConfig

    torch.manual_seed(seed)
    model = Captioner(
        CaptionerConfig(
            vocab_size=len(tokenizer),
            region_size=train.examples[0].regions.shape[1],
            hidden_size=recipe.hidden_size,
            attention_size=recipe.attention_size,
            dropout=recipe.dropout,
            regions_from=regions_from,
        )
    )
    model.generation_config.suppress_tokens = [tokenizer.unk_token_id]  # an unknown word is nothing to say
    steps_in_epoch = math.ceil(len(train) / recipe.batch)
    return fit(
        model,
        objective,
        train,
        validation,
        run,
        settings_of(recipe, steps_in_epoch, seed),
        collate=collate,
        tokenizer=tokenizer,
        optimizers=optimizers(recipe, steps_in_epoch),
        batch_sampler=by_length(recipe.batch),
        callbacks=[sampling_callback(recipe, steps_in_epoch), *callbacks],
    )


def record(recipe: Recipe, objective: Objective, data: dict[str, Any], seed: int) -> dict[str, Any]:
    """What a run of this recipe says it is, for its folder."""
    return {"task": "captioning", "objective": str(objective), "recipe": asdict(recipe), "data": data, "seed": seed}
