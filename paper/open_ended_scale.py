"""The open-ended experiment at its three scales: which models are trained how, and what they are scored on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from paper import base_model
from paper.outcome import BASE_SMALL, NotGiven, Setup
from paper.saved_model import unpack
from scalegrad import objectives
from scalegrad.lab.demo import LEARNING_RATES
from scalegrad.lab.jobs import Job as Training
from scalegrad.lab.jobs import Measured, is_done, merged, run_job
from scalegrad.models import base
from scalegrad.models.memory import gpu_shares
from scalegrad.runs import Job
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended import recipes
from scalegrad.tasks.open_ended.config import TrainConfig
from scalegrad.training import Settings

MAIN = ("mle", "ul=1.0", "sg=0.2")  # of the paper's main table
GRID = ("ul=0.5", "ul=1.5", "sg=0.5", "sg=0.8")  # with these of its validation table
TEST, VALID = "wikitext-103", "wikitext-103:valid"  # as `find_corpus` knows them
UNPACKED = "unpacked"
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

    def job(self, objective: str, seed: int, *measured: Measured) -> Training:
        """The run of an objective and a seed, counted from the config's own."""
        settings = replace(self.config.settings, seed=self.config.settings.seed + seed)
        return Training(replace(self.config, objective=objectives.parse(objective), settings=settings), measured)

    def each_seed(self, objectives: Sequence[str], *measured: Measured) -> list[Training]:
        """Their runs, all objectives of a seed before the next seed."""
        return [self.job(objective, seed, *measured) for seed in range(self.seeds) for objective in objectives]


def scale_of(setup: Setup) -> Scale:
    """The scale of this name, with the model, the seeds and the data of the setup in place of its own."""
    scale = {"smoke": _smoke, "gpu": _gpu, "paper": _paper}[setup.scale](setup)
    config = replace(scale.config, model=_model_of(setup) or scale.config.model)
    if "wikitext-103" in setup.data:
        config = replace(config, data=(setup.data["wikitext-103"],))
    return replace(scale, config=config, seeds=setup.seeds or scale.seeds)


def _model_of(setup: Setup) -> str | None:
    """The setup's model; of a GGUF file the folder it is unpacked into, because reading it takes longer than a run."""
    if setup.model is None or Path(setup.model).suffix != ".gguf":
        return setup.model
    return str(setup.out / UNPACKED / Path(setup.model).stem)


def jobs_of(setup: Setup, trainings: Sequence[Training]) -> list[Job]:
    """These runs as jobs, each once, with everything that is to be measured of it.

    While the model that they start from is to be made here, making it is the only job.
    """
    if not trainings:
        return []
    model, folder = trainings[0].config.model, setup.open_ended
    jobs = [
        Job(f"{folder.name}/{training.name}", run_job, (training, folder), partial(is_done, training, folder))
        for training in merged(trainings)
    ]
    if _is_made_here(setup, model) and not _is_model(model) and not all(job.is_done() for job in jobs):
        _check_makeable(setup, model)
        return [Job(f"the model {Path(model).name}", make_model, (setup, model), partial(_is_model, model))]
    return jobs


def devices_of(setup: Setup) -> Sequence[str] | None:
    """Those of the setup; None is what `run_jobs` takes by default.

    At scale gpu one GPU has several processes, as many as its memory serves, because each leaves it idle.
    """
    if setup.devices is None and setup.scale == "gpu" and torch.cuda.device_count() == 1:
        return [os.environ.get("CUDA_VISIBLE_DEVICES", "0")] * gpu_shares(_SHARE, _MOST_SHARES)
    return setup.devices


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


def make_model(setup: Setup, model: str, progress: Progress | None = None) -> None:
    """A GGUF file unpacked, or the model of GPT-2 small's shape, pre-trained."""
    setup.out.mkdir(parents=True, exist_ok=True)
    if model != str(setup.out / BASE_SMALL):
        unpack(str(setup.model), Path(model))
        return
    work, corpora = _pretraining(setup)
    base_model.make(base_model.RECIPES["small"], work, Path(model), corpora["wikipedia"], corpora["books"])


def _is_model(model: str) -> bool:
    return (Path(model) / "config.json").exists()


def _is_made_here(setup: Setup, model: str) -> bool:
    return model == str(setup.out / BASE_SMALL) or setup.model not in (None, model)  # the other is a GGUF file


def _check_makeable(setup: Setup, model: str) -> None:
    """Refuse before any work what cannot be made."""
    work, corpora = _pretraining(setup)
    there = all(any((work / f"{name}{end}").exists() for end in (".npy", ".npy.xz", ".txt.xz")) for name in corpora)
    if model == str(setup.out / BASE_SMALL) and not there and None in corpora.values():
        raise NotGiven(
            f"{model} is not there: make it (python -m paper.base_model --recipe small --out {model} "
            "--wikipedia FILE --books FILE), or name a model (--model)"
        )


def _pretraining(setup: Setup) -> tuple[Path, dict[str, Path | None]]:
    """The folder that pre-training works in, and the corpora that the user names."""
    corpora = {name: Path(setup.data[name]) if name in setup.data else None for name in base_model.CORPORA}
    return Path(setup.data.get("base-small", setup.out / "pretraining")), corpora
