"""The open-ended experiment at its three scales: which models are trained how, and what they are scored on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paper import base_model
from paper.outcome import Setup
from paper.saved_model import unpack
from scalegrad import objectives
from scalegrad.lab.demo import LEARNING_RATES
from scalegrad.lab.jobs import Job, Measured, free_memory, gpus, is_done, run_jobs, visible_gpus
from scalegrad.models import base
from scalegrad.models.memory import gpu_shares
from scalegrad.runs import Run, only_here, write_json
from scalegrad.tasks.open_ended import recipes
from scalegrad.tasks.open_ended.config import TrainConfig
from scalegrad.tasks.open_ended.training import find_finished
from scalegrad.training import Settings

MAIN = ("mle", "ul=1.0", "sg=0.2")  # of the paper's main table
GRID = ("ul=0.5", "ul=1.5", "sg=0.5", "sg=0.8")  # with these of its validation table
TEST, VALID = "wikitext-103", "wikitext-103:valid"
BASE_SMALL = "base-small"
UNPACKED = "unpacked"
ALONE = "alone.json"
_MOST_SHARES, _SHARE = 4, 24 * 2**30  # processes that share one GPU, and the bytes of its memory for each


@dataclass(frozen=True)
class Scale:
    """What is trained and scored.

    `gammas` and `alphas` are those of the trade-off curves and of the sensitivity figure, beside `MAIN` and `GRID`,
    `schedules` the dynamic γ; one seed each. `penalties` are γ of the novelty penalty that the MLE model is decoded
    under, `other_penalties` the decodings people know. The others are as for `evaluate`; None is all there is.
    """

    config: TrainConfig
    seeds: int = 3
    chunks: int | None = None
    prefixes: int | None = None
    new_tokens: int = 100
    length_prefixes: int | None = None
    decoding_prefixes: int | None = None
    gammas: tuple[float, ...] = tuple(round(0.1 * i, 1) for i in range(1, 10))
    alphas: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0)
    schedules: tuple[str, ...] = ()
    penalties: tuple[float, ...] = tuple(round(0.1 * i, 1) for i in range(1, 10))
    other_penalties: tuple[str, ...] = tuple(
        f"greedy,{rest}"
        for rest in ("repetition_penalty=1.1", "repetition_penalty=1.2", "repetition_penalty=1.5", "block=3", "block=4")
    )
    lengths: tuple[int, ...] = (50, 100, 150, 200, 250, 300)
    decodings: tuple[str, ...] = (
        "greedy", "beam=3", "beam=6", "beam=10", "top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100",
    )  # fmt: skip

    @property
    def curves(self) -> tuple[str, ...]:
        """Objectives that only the curves need."""
        strengths = [*(f"ul={alpha}" for alpha in self.alphas), *(f"sg={gamma}" for gamma in self.gammas)]
        return tuple(name for name in (*strengths, *self.schedules) if name not in (*MAIN, *GRID))

    def job(self, objective: str, seed: int, *measured: Measured) -> Job:
        """The run of an objective and a seed, counted from the config's own."""
        settings = replace(self.config.settings, seed=self.config.settings.seed + seed)
        return Job(replace(self.config, objective=objectives.parse(objective), settings=settings), measured)

    def each_seed(self, objectives: Sequence[str], *measured: Measured) -> list[Job]:
        """Their runs, all objectives of a seed before the next seed."""
        return [self.job(objective, seed, *measured) for seed in range(self.seeds) for objective in objectives]


def scale_of(setup: Setup) -> Scale:
    """The scale of this name, with the model, the seeds and the data of the setup in place of its own."""
    found = {"smoke": _smoke, "gpu": _gpu, "paper": _paper}[setup.scale](setup)
    config = replace(found.config, model=_model_of(setup) or found.config.model)
    if "wikitext-103" in setup.data:
        config = replace(config, data=(setup.data["wikitext-103"],))
    return replace(found, config=config, seeds=setup.seeds or found.seeds)


def _model_of(setup: Setup) -> str | None:
    """The setup's model; of a GGUF file the folder that it is unpacked into, for to read it takes longer than a run."""
    if setup.model is None or Path(setup.model).suffix != ".gguf":
        return setup.model
    return str(setup.out / UNPACKED / Path(setup.model).stem)


def trained(setup: Setup, jobs: Sequence[Job]) -> list[Run]:
    """The runs of `jobs`, trained and measured where they are not yet, the first of them first.

    Where there are several processes, the first seed of `MAIN` is trained before, each with the machine for itself, so
    that time and memory of the objectives compare. With `only_done` the runs that are there, whatever they lack.
    """
    folder = folder_of(setup, jobs[0].config.model)
    if setup.only_done:
        found = [find_finished(job.config, folder / job.name, elsewhere=True) for job in jobs]
        return [run for run in found if run is not None]
    folder.mkdir(parents=True, exist_ok=True)
    if any(not is_done(job, folder) for job in jobs):
        _make_model(setup, jobs[0].config.model)
    devices = devices_of(setup)
    if len(devices) > 1:
        _train_alone(jobs, folder, devices[:1], setup)
    return run_jobs(jobs, folder, devices=devices, progress=setup.progress)


def _train_alone(jobs: Sequence[Job], folder: Path, device: Sequence[str], setup: Setup) -> None:
    """The first seed of `MAIN`, one after another; the account is written before, for it holds when resumed too."""
    first = jobs[0].config.settings.seed
    timed = [replace(job, measured=()) for job in jobs if job.objective in MAIN and job.config.settings.seed == first]
    waiting = [job for job in timed if not is_done(job, folder)]
    kept = alone(folder)
    if kept is None:  # what is done was done by one process
        kept = [job.name for job in timed if job not in waiting]
    write_json(folder / ALONE, list(dict.fromkeys([*kept, *(job.name for job in waiting)])))
    run_jobs(waiting, folder, devices=device, progress=setup.progress)


def folder_of(setup: Setup, model: str) -> Path:
    """Where the runs of a model lie.

    >>> folder_of(Setup("gpu", Path("out")), "out/unpacked/SmolLM2-135M-Instruct.Q4_1").as_posix()
    'out/runs/SmolLM2-135M-Instruct.Q4_1'
    """
    return setup.runs / Path(model).name


def alone(folder: Path) -> list[str] | None:
    """The runs of `folder` that were trained while nothing else was; None where nobody kept account."""
    return list(json.loads((folder / ALONE).read_text())) if (folder / ALONE).is_file() else None


def devices_of(setup: Setup) -> Sequence[str]:
    """Those of the setup; by default every GPU where there are several, and none without a GPU.

    At scale gpu one GPU has several processes, as many as its memory serves, for each leaves it idle.
    """
    if setup.devices is not None:
        return setup.devices
    found = visible_gpus()
    if setup.scale == "gpu" and len(found) == 1:
        shares = gpu_shares(_SHARE, _MOST_SHARES)
        return found * shares if shares > 1 else []
    return gpus()


def _smoke(setup: Setup) -> Scale:
    """Every part once, in seconds, on the validation text alone: what it prints says nothing of the objectives."""
    model = setup.model or base.NAME
    settings = Settings(
        max_steps=2, batch=2, learning_rate=LEARNING_RATES.get(model, 3e-5), evaluate_every=2, log_every=1,
        tracker=(),
    )  # fmt: skip
    config = TrainConfig(model, (VALID,), validation_sequences=2, length=100, settings=settings)
    few = (0.2, 0.5, 0.8)
    return Scale(
        config, seeds=1, chunks=1, prefixes=3, new_tokens=20, length_prefixes=2, gammas=few, alphas=(0.5, 1.0, 1.5),
        schedules=("sg=linear:1.0:0.2:2",), penalties=few, decodings=("greedy", "beam=3", "top_p=0.9", "top_k=40"),
        other_penalties=("greedy,repetition_penalty=1.2", "greedy,block=3"),
    )  # fmt: skip


def _gpu(setup: Setup) -> Scale:
    """A model of GPT-2 small's size on WikiText-2, in minutes: 500 steps of 32 × 300 tokens."""
    steps = 500
    settings = Settings(
        max_steps=steps, batch=32, evaluation_batch=64, learning_rate=3e-5, schedule="linear",
        evaluate_every=steps // 2, save_every=steps, log_every=25, tracker=(),
    )  # fmt: skip
    config = TrainConfig(
        str(setup.out / BASE_SMALL), ("wikitext-2",), validation=VALID, validation_sequences=300, settings=settings
    )
    sixth = 962  # of the prefixes: what is a mean over texts does not need them all
    schedules = (f"sg=linear:1.0:0.2:{steps}", f"sg=linear:0.2:1.0:{steps}")
    return Scale(config, length_prefixes=sixth, decoding_prefixes=sixth, schedules=schedules)


def _paper(setup: Setup) -> Scale:
    """The paper's own: GPT-2 medium on WikiText-103, its grid, three seeds, whole corpora."""
    recipe = recipes.paper()
    steps = recipe.config.settings.max_steps
    return Scale(recipe.config, seeds=recipe.seeds, schedules=(f"sg=linear:1.0:0.2:{steps}",))


def _make_model(setup: Setup, model: str) -> None:
    """What is made here and not there yet: a GGUF file unpacked, or the model of GPT-2 small's shape, pre-trained."""
    folder = setup.out / BASE_SMALL
    if (Path(model) / "config.json").exists():
        return
    if model != str(folder):
        if setup.model not in (None, model):  # a GGUF file
            with only_here(setup.out):
                unpack(str(setup.model), Path(model))
        return
    work = Path(setup.data.get("base-small", setup.out / "pretraining"))
    named = {name: Path(setup.data[name]) if name in setup.data else None for name in base_model.CORPORA}
    there = all(any((work / f"{name}{end}").exists() for end in (".npy", ".npy.xz", ".txt.xz")) for name in named)
    if not there and None in named.values():
        raise ValueError(
            f"{folder} is not there: make it (python -m paper.base_model --recipe small --out {folder} "
            "--wikipedia FILE --books FILE), or name a model (--model)"
        )
    setup.out.mkdir(parents=True, exist_ok=True)
    with only_here(setup.out):
        base_model.make(base_model.RECIPES["small"], work, folder, named["wikipedia"], named["books"])
    free_memory()  # for the processes that follow
