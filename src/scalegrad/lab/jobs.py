"""Runs to be trained and scored, what is done already left as it is: one after another, or by several processes."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

import torch

from scalegrad.decoding import load
from scalegrad.extras import need
from scalegrad.models.memory import share_gpu
from scalegrad.runs import Run, only_here
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.corpora import Corpus, find_corpus
from scalegrad.tasks.open_ended.evaluation import evaluate_run, saved_gamma
from scalegrad.tasks.open_ended.training import TrainConfig, find_finished, train
from scalegrad.training import training_progress


class Measured(Protocol):
    """Something to be measured of a trained run."""

    def is_done(self, run: Run) -> bool:
        """Whether the run has every figure asked for, measured as asked."""
        ...

    def measure(self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool, progress: Progress | None) -> None:
        """Measure what is missing, and leave it in the run's folder."""
        ...


@dataclass(frozen=True)
class Scoring:
    """The columns of the paper's tables on `corpus`, its texts by `strategies`; the rest as for `evaluate`.

    `name` keeps the figures under another name than the corpus', so that a study of fewer prefixes does not replace
    them.
    """

    corpus: str
    strategies: tuple[str, ...] = ("greedy",)
    chunks: int | None = None
    prefixes: int | None = None
    new_tokens: int = 100
    name: str = ""

    def is_done(self, run: Run) -> bool:
        """Whether every column and decoding is there, under this protocol."""
        corpus = self._corpus()
        found = self._found(run, corpus)
        return self._holds(found, corpus) and not self._missing(found) and not self._predictions_missing(found)

    def measure(self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool, progress: Progress | None) -> None:
        """What was measured under another protocol is measured anew; what a stopped run left is gone on with."""
        corpus = self._corpus()
        found = {} if overwrite else self._found(run, corpus)
        other = bool(found) and not self._holds(found, corpus)
        found = {} if other else found
        texts = self._missing(found)
        evaluate_run(
            run, model, tokenizer, corpus,
            strategies=[s for s in self.strategies if s in texts or self._unpredicted(found, s)],
            gamma=saved_gamma(model.config),
            chunks=self.chunks if self._predictions_missing(found) else 0,
            prefixes=self.prefixes if texts else 0,
            new_tokens=self.new_tokens, overwrite=overwrite or other, progress=progress,
        )  # fmt: skip

    def _corpus(self) -> Corpus:
        found = find_corpus(self.corpus)
        return replace(found, name=self.name or found.name)

    def _found(self, run: Run, corpus: Corpus) -> dict[str, Any]:
        found = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
        return dict(found.get(corpus.name, {}))

    def _holds(self, found: dict[str, Any], corpus: Corpus) -> bool:
        """Whether these figures are of this protocol: the same text, as many chunks and prefixes, as long texts."""
        protocol = found.get("protocol", {})
        if protocol.get("corpus_sha256") != corpus.checksum:
            return False
        if self.prefixes != 0 and "completion" in found and protocol["new_tokens"] != self.new_tokens:
            return False
        parts = (("chunks", self.chunks, "language_modelling"), ("prefixes", self.prefixes, "completion"))
        return all(
            wanted == 0
            or part not in found
            or protocol[name] == min(protocol[f"all_{name}"], math.inf if wanted is None else wanted)
            for name, wanted, part in parts
        )

    def _missing(self, found: dict[str, Any]) -> tuple[str, ...]:
        """The decodings that are not there yet."""
        there = found.get("completion", {})
        return () if self.prefixes == 0 else tuple(name for name in self.strategies if name not in there)

    def _predictions_missing(self, found: dict[str, Any]) -> bool:
        """Whether next tokens are to be predicted still: by the model, or under the penalty of a decoding."""
        if self.chunks == 0:
            return False
        return "language_modelling" not in found or any(self._unpredicted(found, s) for s in self.strategies)

    def _unpredicted(self, found: dict[str, Any], strategy: str) -> bool:
        """Whether the model's predictions under the penalty of a decoding are asked for and missing."""
        words = {word for word in strategy.split(",") if word.startswith("gamma=")}
        return self.chunks != 0 and not words <= set(found.get("penalised", {}))


@dataclass(frozen=True)
class Job:
    """One run: to be trained as `config` says, then measured."""

    config: TrainConfig
    measured: tuple[Measured, ...] = field(default=())

    @property
    def objective(self) -> str:
        """Its objective as text: "sg=0.2"."""
        return str(self.config.objective)

    @property
    def name(self) -> str:
        """Its folder: "sg-0.2-seed-0"."""
        words = self.objective.replace("=", "-").replace(":", "-")
        return f"{words}-seed-{self.config.settings.seed}"


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Each run once, in the order in which they are named first, with everything that is asked of it."""
    found: dict[str, Job] = {}
    for job in jobs:
        first = found.get(job.name, replace(job, measured=()))
        found[job.name] = replace(first, measured=tuple(dict.fromkeys((*first.measured, *job.measured))))
    return list(found.values())


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    *,
    devices: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Run]:
    """Do what is not done yet of `jobs`, in their order, into folders of their names in `folder`; their runs.

    `devices` are names for CUDA_VISIBLE_DEVICES, a process each (one named twice has two); by default every GPU where
    there are several. Without any, everything happens in this process. Only one process at a time may do so in
    `folder`.
    """
    if overwrite or any(not is_done(job, folder) for job in jobs):
        folder.mkdir(parents=True, exist_ok=True)
        with only_here(folder):
            waiting = [job for job in jobs if overwrite or not is_done(job, folder)]
            _run_waiting(waiting, folder, gpus() if devices is None else devices, overwrite, progress)
    return [Run.open(folder / job.name) for job in jobs]


def _run_waiting(
    waiting: Sequence[Job], folder: Path, devices: Sequence[str], overwrite: bool, progress: Progress | None
) -> None:
    if devices and waiting:
        _in_parallel(waiting, folder, devices, overwrite, progress)
        return
    for done, job in enumerate(waiting):
        if progress:
            progress("runs", done, len(waiting))
        run_job(job, folder, overwrite=overwrite, progress=progress)


def run_job(job: Job, folder: Path, *, overwrite: bool = False, progress: Progress | None = None) -> None:
    """Train one run into `folder`/NAME and measure it; what is done already is left as it is, but for `overwrite`."""
    run = None if overwrite else find_finished(job.config, folder / job.name)
    if run is None:
        callbacks = [] if progress is None else [training_progress(progress, f"training {job.name}")]
        run = train(job.config, folder / job.name, overwrite=overwrite, callbacks=callbacks, progress=progress).run
    model = tokenizer = None
    for item in job.measured:
        if not overwrite and item.is_done(run):
            continue
        if model is None:
            free_memory()
            model, tokenizer = load(str(run.model_path), trust_remote_code=job.config.trust_remote_code)
        item.measure(run, model, tokenizer, overwrite=overwrite, progress=progress)
    del model
    free_memory()


def is_done(job: Job, folder: Path) -> bool:
    """Whether the run of `job` in `folder` is trained and has every figure; nothing is loaded to tell."""
    run = find_finished(job.config, folder / job.name)
    return run is not None and all(item.is_done(run) for item in job.measured)


def gpus() -> list[str]:
    """Names of the GPUs for CUDA_VISIBLE_DEVICES, where there is more than one."""
    found = visible_gpus()
    return found if len(found) > 1 else []


def visible_gpus() -> list[str]:
    """Names of the GPUs that this process sees, for CUDA_VISIBLE_DEVICES."""
    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (named.split(",") if named else [str(i) for i in range(count)])[:count]


def _in_parallel(
    jobs: Sequence[Job], folder: Path, devices: Sequence[str], overwrite: bool, progress: Progress | None
) -> None:
    """A process for each device takes the next job when it is free; the first failure ends them all."""
    devices = devices[: len(jobs)]
    context = multiprocessing.get_context("spawn")
    free: Any = context.Queue()
    for device in devices:
        free.put((device, devices.count(device)))
    with ProcessPoolExecutor(len(devices), context, _take_device, (free,)) as pool:
        waiting = {pool.submit(run_job, job, folder, overwrite=overwrite): job for job in jobs}
        for done, finished in enumerate(as_completed(waiting), start=1):
            try:
                finished.result()
            except (ValueError, OSError) as error:
                raise ValueError(f"{waiting[finished].name}: {error}") from None
            except BrokenProcessPool:
                raise ValueError(
                    "a process was ended from outside, perhaps for want of memory; what was done is kept, and the same "
                    "call goes on (with fewer processes they have more memory each)"
                ) from None
            finally:
                if finished.exception() is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
            if progress:
                progress("runs", done, len(jobs))


def _take_device(free: Queue[tuple[str, int]]) -> None:
    """Before anything in this process looks at a GPU: see one only, and a part of it where several processes share it.

    Without its parent the process ends.
    """
    os.environ["CUDA_VISIBLE_DEVICES"], processes = free.get()
    share_gpu(processes)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging = need("transformers", extra="train").utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _end_with_parent() -> None:
    """Who was killed is started again, and must not find a run that an orphan still writes to."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def free_memory() -> None:
    """What nobody holds any more goes back to the accelerator, where other processes can have it."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
