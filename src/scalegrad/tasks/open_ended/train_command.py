"""`scalegrad train`: any causal language model on any text, by likelihood, unlikelihood or ScaleGrad."""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, ArgumentCollection

from scalegrad import objectives
from scalegrad.extras import need
from scalegrad.models.pretrained import check_causal
from scalegrad.objectives import Objective
from scalegrad.options import FLAT, AsJson, Overwrite, SkipBad, fill, option, values
from scalegrad.runs.terminal import bars, quiet_transformers
from scalegrad.tasks.open_ended.config import TrainConfig

GAMMA = "γ of sg, in (0, 1]; smaller pushes harder. Or a schedule: linear:START:STOP:STEPS, cosine:…."

if TYPE_CHECKING:
    from scalegrad.training import Fitted


def _known(_: App, __: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Options that were not typed have the values of --recipe or --config."""
    typed = {argument.field_info.name: argument.tokens[-1].value for argument in arguments if argument.tokens}
    known: dict[str, Any] = {}
    if "recipe" in typed:
        from scalegrad.tasks.open_ended import recipes

        recipe = recipes.find(typed["recipe"])
        known = values(recipe.config) | {"seeds": recipe.seeds}
    if "config_file" in typed:
        known |= _read_config(Path(typed["config_file"]))
    if {"max_steps", "epochs"} & typed.keys():
        known = {name: value for name, value in known.items() if name not in ("max_steps", "epochs")}
    if "=" in typed.get("objective", "") and {"gamma", "alpha"} & typed.keys():
        raise ValueError(f"--objective {typed['objective']} has its strength: leave out --gamma and --alpha")
    fill(arguments, known, typed.get("recipe", "--config"))


app = App(name="train", config=_known)


@app.default
def command(
    config: Annotated[TrainConfig, FLAT],
    *,
    gamma: Annotated[str | None, option(metavar="GAMMA", help=GAMMA)] = None,
    alpha: Annotated[float | None, option(help="α of ul, 0 or more; larger pushes harder.")] = None,
    recipe: Annotated[str | None, option(help="paper: the paper's settings; other options override them.")] = None,
    config_file: Annotated[
        Path | None,
        option(name="--config", help="The config.json of a run, or a JSON file of options; others override."),
    ] = None,
    seeds: Annotated[int, option(help="Train this many times, with seeds from --seed on, in OUT/seed-N.")] = 1,
    out: Annotated[Path | None, option(help="Folder of the run (default: a new one in runs/).")] = None,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a causal language model on text; the one with the best plain validation perplexity is kept.

    Stopped at any moment, the same command goes on where it was and ends with the same weights.

    Example: scalegrad train gpt2 corpus.txt --objective sg --gamma 0.2 --out runs/sg
    """
    config = replace(config, objective=_objective(config.objective, gamma, alpha))
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, not {seeds}")
    _check(config)
    for module in ("transformers", "accelerate"):
        need(module, extra="train")
    quiet_transformers()
    folder = out or Path("runs") / _name(config)
    fitted = []
    printed: set[str] = set()  # every seed reads the same data
    first = config.settings.seed
    for number in range(first, first + seeds):
        one = replace(config, settings=replace(config.settings, seed=number))
        fitted.append(_train(one, folder / f"seed-{number}" if seeds > 1 else folder, overwrite, skip_bad, printed))
    if os.environ.get("RANK", "0") == "0":
        _report(fitted, config, folder, as_json)


def _check(config: TrainConfig) -> None:
    """What can be known of the model and the data before anything large is loaded."""
    from scalegrad.tasks.open_ended.data import check_sources

    check_sources((*config.data, *([config.validation] if config.validation not in (None, "none") else [])))
    if config.init is None:
        check_causal(config.model)


def _read_config(path: Path) -> dict[str, Any]:
    """The options in a run's config.json, or in a JSON file of the same fields."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"--config: {path} is not JSON ({error})") from None
    if not isinstance(saved, Mapping):
        raise ValueError(f"--config: {path} holds no options; expected the config.json of a run")
    options = {**saved, **saved.get("fields", {}), **saved.get("settings", {})}
    if "objective" in options:
        options["objective"] = objectives.parse(options["objective"])
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def _objective(objective: Objective, gamma: str | None, alpha: float | None) -> Objective:
    """--objective sg --gamma 0.2, or --objective sg=0.2."""
    for option_name, owner, strength in (("gamma", "sg", gamma), ("alpha", "ul", alpha)):
        if strength is None:
            continue
        if objective.name != owner:
            raise ValueError(f"--{option_name} is the strength of {owner}, and the objective is {objective.name}")
        objective = objectives.parse(f"{owner}={strength}")
    return objective


def _name(config: TrainConfig) -> str:
    """A folder's name from the model's and the objective's."""
    model = Path(config.init or config.model).name.removesuffix(".gguf").removesuffix(".json")
    return re.sub(r"[^\w.=-]+", "-", f"{model}-{config.objective}")


def _train(config: TrainConfig, folder: Path, overwrite: bool, skip_bad: bool, printed: set[str]) -> Fitted:
    from scalegrad.data import Problems
    from scalegrad.tasks.open_ended.training import train
    from scalegrad.training import Reporter

    with bars() as progress:
        shown = progress if os.environ.get("RANK", "0") == "0" else None
        callbacks = [Reporter(shown, str(folder))] if shown else []

        def log(line: str) -> None:
            if shown and line not in printed:
                printed.add(line)
                print(line, file=sys.stderr, flush=True)

        return train(
            config,
            folder,
            overwrite=overwrite,
            callbacks=callbacks,
            problems=Problems(skip_bad),
            progress=shown,
            log=log,
        )


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
    perplexities = [one.validation_ppl for one in fitted if one.validation_ppl is not None]
    if len(perplexities) > 1:
        print(f"validation perplexity {statistics.mean(perplexities):.2f} ± {statistics.stdev(perplexities):.2f}")
