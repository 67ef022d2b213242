"""`scalegrad train`: any causal language model on any text, by likelihood, unlikelihood or ScaleGrad."""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalegrad import objectives
from scalegrad.extras import need
from scalegrad.runs.terminal import bars, quiet_transformers
from scalegrad.tasks.open_ended.training_options import (
    Accumulation,
    Alpha,
    AsJson,
    BatchSize,
    Checkpointing,
    Clip,
    Compile,
    CompletionField,
    Data,
    Decay,
    Deepspeed,
    Epochs,
    EvaluateEvery,
    EvaluationBatch,
    Field,
    Fsdp,
    Gamma,
    Init,
    Length,
    LogEvery,
    LoraAlpha,
    LoraDropout,
    LoraRank,
    Model,
    ObjectiveName,
    Out,
    Overwrite,
    Patience,
    Precision,
    Prompt,
    PromptField,
    Protocol,
    Rate,
    RecipeName,
    SaveEvery,
    ScheduleName,
    Seed,
    Seeds,
    Steps,
    Tracker,
    Trust,
    Validation,
    ValidationSequences,
    Warmup,
    Workers,
)

if TYPE_CHECKING:
    from scalegrad.objectives import Objective
    from scalegrad.tasks.open_ended.recipes import Recipe
    from scalegrad.tasks.open_ended.training import TrainConfig
    from scalegrad.training import Fitted


def command(
    model: Model = None,
    data: Data = None,
    recipe: RecipeName = None,
    objective: ObjectiveName = None,
    gamma: Gamma = None,
    alpha: Alpha = None,
    out: Out = None,
    init: Init = None,
    validation: Validation = None,
    validation_sequences: ValidationSequences = None,
    field: Field = None,
    prompt_field: PromptField = None,
    completion_field: CompletionField = None,
    protocol: Protocol = None,
    length: Length = None,
    prompt: Prompt = None,
    max_steps: Steps = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    accumulation: Accumulation = None,
    learning_rate: Rate = None,
    schedule: ScheduleName = None,
    warmup_steps: Warmup = None,
    weight_decay: Decay = None,
    max_grad_norm: Clip = None,
    evaluate_every: EvaluateEvery = None,
    evaluation_batch_size: EvaluationBatch = None,
    save_every: SaveEvery = None,
    log_every: LogEvery = None,
    patience: Patience = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    precision: Precision = None,
    gradient_checkpointing: Checkpointing = None,
    compile: Compile = None,
    lora: LoraRank = None,
    lora_alpha: LoraAlpha = None,
    lora_dropout: LoraDropout = None,
    tracker: Tracker = None,
    workers: Workers = None,
    fsdp: Fsdp = None,
    deepspeed: Deepspeed = None,
    trust_remote_code: Trust = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a causal language model on text; the one with the best plain validation perplexity is kept.

    Stopped at any moment, the same command goes on where it was and ends with the same weights.

    Example: scalegrad train gpt2 corpus.txt --objective sg --gamma 0.2 --out runs/sg
    """
    given = dict(locals())  # first of all: the options as they came
    for module in ("transformers", "accelerate"):
        need(module, extra="train")
    quiet_transformers()
    asked = _asked(given)
    config = asked.config
    folder = Path(out) if out else Path("runs") / _name(config)
    several = asked.seeds > 1
    fitted = []
    printed: set[str] = set()  # every seed reads the same data
    for number in range(seed, seed + asked.seeds):
        one = replace(config, settings=replace(config.settings, seed=number))
        fitted.append(_train(one, folder / f"seed-{number}" if several else folder, overwrite, printed))
    if os.environ.get("RANK", "0") == "0":
        _report(fitted, config, folder, as_json)


def _asked(given: dict[str, Any]) -> Recipe:
    """The recipe, or what is usual, with every option that was given put in its place."""
    from scalegrad.tasks.open_ended import recipes
    from scalegrad.tasks.open_ended.data import Fields
    from scalegrad.tasks.open_ended.training import Lora, TrainConfig
    from scalegrad.training import Settings

    if given["recipe"] is None and not (given["model"] and given["data"]):
        raise ValueError("name a model and what to train it on: scalegrad train MODEL DATA…")
    found = recipes.find(given["recipe"]) if given["recipe"] else recipes.Recipe(TrainConfig(given["model"], ()))
    told = {name: value for name, value in given.items() if value is not None}
    settings = {name: told[name] for name in Settings.names() if name in told}
    if "max_steps" in settings or "epochs" in settings:
        settings = {"max_steps": None, "epochs": None, **settings}
    if "tracker" in told:
        settings["trackers"] = tuple(name for name in told["tracker"] if name != "none")
    plain = ("model", "init", "validation", "validation_sequences", "protocol", "length", "prompt")
    changes: dict[str, Any] = {name: told[name] for name in plain if name in told}
    if told.get("data"):
        changes["data"] = tuple(told["data"])
    if "lora" in told:
        changes["lora"] = Lora(told["lora"], told.get("lora_alpha", 2.0 * told["lora"]), told.get("lora_dropout", 0.0))
    elif "lora_alpha" in told or "lora_dropout" in told:
        raise ValueError("--lora-alpha and --lora-dropout are for low-rank additions: give --lora RANK too")
    config = replace(
        found.config,
        **changes,
        objective=_objective(found.config.objective, told),
        fields=Fields(told.get("field"), told.get("prompt_field"), told.get("completion_field")),
        settings=replace(found.config.settings, **settings),
        trust_remote_code=told["trust_remote_code"],
    )
    seeds = told.get("seeds", found.seeds)
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, not {seeds}")
    return recipes.Recipe(config, seeds)


def _objective(usual: Objective, told: dict[str, Any]) -> Objective:
    """--objective sg --gamma 0.2, --objective sg=0.2, or the recipe's."""

    text = told.get("objective", str(usual))
    name = text.partition("=")[0]
    for option, owner in (("gamma", "sg"), ("alpha", "ul")):
        if option not in told:
            continue
        if name != owner:
            raise ValueError(f"--{option} is the strength of {owner}, and the objective is {name}")
        if "=" in told.get("objective", ""):
            raise ValueError(f"--{option} {told[option]} and --objective {text}: give one of them")
        text = f"{name}={told[option]}"
    return objectives.parse(text)


def _name(config: TrainConfig) -> str:
    """A folder's name from the model's and the objective's."""
    model = Path(config.init or config.model).name.removesuffix(".gguf").removesuffix(".json")
    return re.sub(r"[^\w.=-]+", "-", f"{model}-{config.objective}")


def _train(config: TrainConfig, folder: Path, overwrite: bool, printed: set[str]) -> Fitted:
    from scalegrad.tasks.open_ended.training import train
    from scalegrad.training import training_progress

    with bars() as told:
        drawn = told if os.environ.get("RANK", "0") == "0" else None
        callbacks = [training_progress(drawn, str(folder))] if drawn else []

        def log(line: str) -> None:
            if drawn and line not in printed:
                printed.add(line)
                print(line, file=sys.stderr, flush=True)

        return train(config, folder, overwrite=overwrite, callbacks=callbacks, progress=drawn, log=log)


def _report(fitted: list[Fitted], config: TrainConfig, folder: Path, as_json: bool) -> None:
    runs = [{"run": str(one.run.path), **one.run.load("done"), "model": str(one.run.model_path)} for one in fitted]
    if as_json:
        print(json.dumps({"out": str(folder), "objective": str(config.objective), "runs": runs}))
        return
    for one in fitted:
        validated = "" if one.validation_ppl is None else f", validation perplexity {one.validation_ppl:.2f}"
        print(
            f"{one.run.model_path}: {config.objective.label}, step {one.selected_step:,} of {one.steps:,}{validated} "
            f"({one.seconds:.1f} s)"
        )
    values = [one.validation_ppl for one in fitted if one.validation_ppl is not None]
    if len(values) > 1:
        print(f"validation perplexity {statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}")
