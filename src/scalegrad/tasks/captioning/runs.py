"""The captioning experiment from one call: train the objectives, fill the tables, leave a folder with all of it.

On a machine without the command line's packages:

    python -m scalegrad.tasks.captioning.runs --out FOLDER --scale large --seeds 3 --parallel 9

`--regions FILE` keeps the scenes' features, and makes them where FILE is not there yet; a machine that has the file
needs no Pillow.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from scalegrad.objectives import Objective
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs import Run, replacing, write_json
from scalegrad.tasks.captioning.config import PAPER_OBJECTIVES
from scalegrad.tasks.captioning.experiment import (
    FILES,
    Splits,
    run_objective,
    scene_regions,
    scene_splits,
)
from scalegrad.tasks.captioning.features import Features, open_features, save_features
from scalegrad.tasks.captioning.report import CaptionRun
from scalegrad.tasks.captioning.scenes import make_scene
from scalegrad.tasks.captioning.scoring import Told
from scalegrad.tasks.captioning.training import SCENES, SCENES_LARGE, Recipe, record
from scalegrad.training import training_progress

# How many scenes, and what is trained on them: minutes on a laptop, or minutes on a GPU.
SCALES: dict[str, tuple[dict[str, int], Recipe]] = {
    "small": ({"train": 4_000, "valid": 200, "test": 200}, SCENES),
    "large": ({"train": 12_000, "valid": 500, "test": 1_000}, SCENES_LARGE),
}


def caption_experiment(
    splits: Splits,
    recipe: Recipe,
    folder: Path,
    objectives: Sequence[Objective] = PAPER_OBJECTIVES,
    seeds: Sequence[int] = (0,),
    *,
    betas: Callable[[Objective], Mapping[str, Sequence[float]]] = lambda objective: {},
    overwrite: bool = False,
    told: Told | None = None,
) -> list[CaptionRun]:
    """Train and score every objective with every seed, one after another, in FOLDER/OBJECTIVE-SEED.

    `betas(objective)`: as for `evaluate_captioner`.
    """
    runs = []
    for seed in seeds:
        for objective in objectives:
            run = run_objective(
                objective,
                splits,
                recipe,
                run_path(folder, objective, seed),
                seed=seed,
                betas=betas(objective),
                overwrite=overwrite,
                told=told,
                callbacks=[training_progress(told, f"training {objective.label}, seed {seed}")] if told else [],
            )
            runs.append(read_run(run))
    return runs


def run_path(folder: Path, objective: Objective, seed: int) -> Path:
    """Where the run of an objective and a seed lies.

    >>> run_path(Path("out"), Objective("sg", 0.5), 1).as_posix()
    'out/sg-0.5-seed1'
    """
    return folder / f"{str(objective).replace('=', '-').replace(':', '-')}-seed{seed}"


def read_run(run: Run) -> CaptionRun:
    """What a finished captioning run left."""
    texts = {
        path.stem: {line["image_id"]: line["text"] for line in run.load(f"samples/{path.name}")}
        for path in sorted((run.path / "samples").glob("*.jsonl"))
    }
    made = {"config": run.config, "environment": run.load("environment"), "done": run.load("done")}
    objective = parse_objective(run.config["objective"])
    return CaptionRun(objective, run.config["seed"], run.load("captions"), texts, run.metrics(), made)


def scene_picture(name: str) -> str:
    """The picture of a scene ("test-7") as a data: address."""
    split, _, number = name.rpartition("-")
    return picture_address(make_scene(split, int(number)).image)


def picture_address(image: Any, side: int = 384) -> str:
    """An image as a data: address, no larger than `side` pixels; small drawn ones keep every pixel."""
    shown = image.convert("RGB")
    shown.thumbnail((side, side))
    kind = "png" if max(shown.size) <= 128 else "jpeg"
    held = io.BytesIO()
    shown.save(held, kind)
    return f"data:image/{kind};base64,{base64.b64encode(held.getvalue()).decode()}"


def summary(runs: Sequence[CaptionRun]) -> list[dict[str, Any]]:
    """Every run's figures as plain values, for a file."""
    return [{"objective": str(run.objective), "seed": run.seed, **run.found} for run in runs]


def kept_regions(path: Path, sizes: Mapping[str, int]) -> Features:
    """The features of drawn scenes from `path`, made and written there, in half precision, where it is not there."""
    if not path.exists():
        made = {name: value for split, size in sizes.items() for name, value in scene_regions(split, size).items()}
        with replacing(path) as unfinished:
            save_features(unfinished, {name: value.half() for name, value in made.items()})
    return open_features(path)


def run_scenes(
    scale: str,
    folder: Path,
    objectives: Sequence[Objective],
    seeds: int,
    parallel: int = 1,
    *,
    epochs: int | None = None,
    regions: Path | None = None,
    overwrite: bool = False,
    told: Told | None = None,
) -> list[CaptionRun]:
    """The experiment on drawn scenes, `parallel` trainings at a time: each a process, the cores shared out among them.

    Several processes of a thread each are faster than one of several threads: the products of a step are small.
    """
    sizes, recipe = SCALES[scale]
    recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
    wanted = [(objective, seed) for seed in range(seeds) for objective in objectives]
    # Made here, so that a folder with runs of other settings is refused before anything starts.
    runs = [
        Run.create(
            run_path(folder, objective, seed),
            scene_record(sizes, recipe, objective, seed),
            overwrite=overwrite,
            files=FILES,
        )
        for objective, seed in wanted
    ]
    left = [place for place, run in enumerate(runs) if not (run.finished and (run.path / "captions.json").exists())]
    if parallel <= 1 and left:
        splits = scene_splits(sizes, told, kept_regions(regions, sizes) if regions else None)
        return caption_experiment(splits, recipe, folder, objectives, range(seeds), told=told)
    start = [sys.executable, "-m", "scalegrad.tasks.captioning.runs", "--out", str(folder), "--scale", scale]
    start += ["--regions", str(regions)] if regions else []
    start += [] if epochs is None else ["--epochs", str(epochs)]
    names = {at: f"training {wanted[at][0].label}, seed {wanted[at][1]}" for at in left}
    commands = {
        names[at]: [*start, "--objective", str(wanted[at][0]), "--only-seed", str(wanted[at][1])] for at in left
    }

    def watch() -> None:
        for at in left if told else ():
            done = max((line["step"] for line in runs[at].metrics()), default=0)
            if told:
                told(names[at], done, recipe.steps(sizes["train"]))

    threads = str(max(1, (os.cpu_count() or 1) // max(parallel, 1)))
    _run_all(commands, parallel, {**os.environ, "OMP_NUM_THREADS": threads}, watch)
    return [read_run(run) for run in runs]


def trainings_at_a_time(runs: int) -> int:
    """All of a few trainings side by side on a CPU: threads of one training would mostly wait for each other."""
    return 1 if torch.accelerator.is_available() else min(runs, 2 * (os.cpu_count() or 1))


def scene_record(sizes: Mapping[str, int], recipe: Recipe, objective: Objective, seed: int) -> dict[str, Any]:
    """What a run on drawn scenes says it is."""
    return record(recipe, objective, {"name": "scenes", **sizes}, seed)


def _run_all(
    commands: Mapping[str, Sequence[str]],
    parallel: int,
    environment: Mapping[str, str],
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Run commands by name, so many at a time, watching now and then; the first that fails ends the rest."""
    waiting, running = list(commands), dict[str, _Child]()
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                name = waiting.pop(0)
                running[name] = _Child(commands[name], environment)
            ended = [name for name, child in running.items() if child.process.poll() is not None]
            for name in ended:
                if running[name].process.returncode:
                    raise ValueError(f"{name}: {running[name].last_words()}")
                running.pop(name).end()
            watch()
            time.sleep(0.0 if ended else 0.5)
    finally:
        for child in running.values():
            child.end()


class _Child:
    """A process whose remarks are kept in a file: a pipe that nobody reads would fill up and stop it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.remarks = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self.process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=self.remarks)

    def last_words(self) -> str:
        """What a process that failed said last: of a traceback, the error."""
        self.remarks.seek(0)
        lines = self.remarks.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f"{said[-1] if said else 'it ended'} (exit code {self.process.returncode})"

    def end(self) -> None:
        """Stop the process, if it still runs."""
        self.process.terminate()
        self.process.wait()
        self.remarks.close()


def main(argv: Sequence[str] | None = None) -> None:
    """The module as a command."""
    parser = argparse.ArgumentParser(
        prog="python -m scalegrad.tasks.captioning.runs", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs and captions.json")
    parser.add_argument("--scale", choices=tuple(SCALES), default="small")
    parser.add_argument("--objective", action="append", type=parse_objective, help="default: the paper's three")
    parser.add_argument("--seeds", type=int, default=1, help="0: make --regions and no more")
    parser.add_argument("--only-seed", type=int, help="train this one seed and write no summary")
    parser.add_argument("--parallel", type=int, default=1, help="trainings at a time")
    parser.add_argument("--epochs", type=int, help="in place of the recipe's")
    parser.add_argument("--regions", type=Path, help="file for the scenes' features")
    given = parser.parse_args(argv)
    if given.epochs is not None and given.epochs < 1:
        parser.error(f"--epochs must be at least 1, not {given.epochs}")
    objectives = given.objective or PAPER_OBJECTIVES
    sizes, recipe = SCALES[given.scale]
    regions = kept_regions(given.regions, sizes) if given.regions else None
    if given.only_seed is not None:
        recipe = recipe if given.epochs is None else replace(recipe, epochs=given.epochs)
        caption_experiment(scene_splits(sizes, regions=regions), recipe, given.out, objectives, [given.only_seed])
    elif given.seeds:
        options = {"epochs": given.epochs, "regions": given.regions}
        runs = run_scenes(given.scale, given.out, objectives, given.seeds, given.parallel, **options)
        write_json(given.out / "captions.json", {"runs": summary(runs), "left_out": {}})
        print((given.out / "captions.json").read_text())


if __name__ == "__main__":
    main()
