"""Many runs at once: a plain list of jobs, each run once, one after another or by several processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

from scalegrad.counts import counted
from scalegrad.runs.lock import only_here
from scalegrad.runs.progress import Progress


def run_name(objective: object, seed: int) -> str:
    """The folder of a run among others: its objective and its seed.

    >>> run_name("sg=0.2", 0), run_name("sg=linear:1.0:0.2:9", 1)
    ('sg-0.2-seed-0', 'sg-linear-1.0-0.2-9-seed-1')
    """
    return f"{str(objective).replace('=', '-').replace(':', '-')}-seed-{seed}"


@dataclass(frozen=True)
class Job:
    """Something to do once: `function(*arguments, progress=…)`, which leaves what it makes in files.

    The function must go on where it was stopped, and come to the same end. `is_done` says without loading anything
    that nothing is left to do.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    is_done: Callable[[], bool] = field(default=lambda: False, compare=False)


class JobsFailed(RuntimeError):
    """Some jobs failed; the others are done. `errors` has each by the job's name."""

    def __init__(self, errors: Mapping[str, BaseException], jobs: int) -> None:
        reasons = "; ".join(f"{name}: {_reason(error)}" for name, error in errors.items())
        super().__init__(
            f"{len(errors)} of {counted(jobs, 'job')} failed, the others are done: {reasons}. "
            "The same command tries the failed ones again."
        )
        self.errors = dict(errors)


def run_jobs(
    jobs: Iterable[Job],
    folder: Path,
    *,
    devices: Sequence[str] | None = None,
    processes: int = 1,
    progress: Progress | None = None,
) -> None:
    """Do every job that is not done, in order; a failure stops no other job, and JobsFailed is raised at the end.

    `devices` are names for CUDA_VISIBLE_DEVICES, a process for each (a name given twice has two); by default every GPU
    where there are several. On a CPU, or on one GPU, `processes` run at a time; with 1 all happens in this process.
    Only one caller at a time may work in `folder`.
    """
    waiting = [job for job in jobs if not job.is_done()]
    names = [job.name for job in waiting]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"jobs: {', '.join(sorted(twice))} is named twice; expected different names")
    if not waiting:
        return
    devices = several_gpus() if devices is None else list(devices)
    folder.mkdir(parents=True, exist_ok=True)
    with only_here(folder):
        if devices or processes > 1:
            slots = devices or [os.environ.get("CUDA_VISIBLE_DEVICES", "0")] * processes
            errors = dict(_in_parallel(waiting, slots[: len(waiting)], progress))
        else:
            errors = dict(_one_by_one(waiting, progress))
    if errors:
        raise JobsFailed(errors, len(waiting))


def several_gpus() -> list[str]:
    """Names of the GPUs for CUDA_VISIBLE_DEVICES, if there is more than one."""
    import torch

    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = (visible.split(",") if visible else [str(i) for i in range(count)])[:count]
    return names if len(names) > 1 else []


def free_gpu_memory() -> None:
    """Give memory that nothing uses back to the accelerator, for other processes."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _one_by_one(jobs: Sequence[Job], progress: Progress | None) -> Iterator[tuple[str, BaseException]]:
    for number, job in enumerate(jobs):
        if progress:
            progress("runs", number, len(jobs))
        try:
            job.function(*job.arguments, progress=progress)
        except Exception as error:
            yield job.name, error
        free_gpu_memory()
    if progress:
        progress("runs", len(jobs), len(jobs))


def _in_parallel(
    jobs: Sequence[Job], slots: Sequence[str], progress: Progress | None
) -> Iterator[tuple[str, BaseException]]:
    """A process for each slot takes the next job when it is free, and sends its progress here."""
    context = multiprocessing.get_context("spawn")
    free: Any = context.Queue()
    for slot in slots:
        free.put((slot, list(slots).count(slot), len(slots)))
    news: Any = context.Queue()
    with ProcessPoolExecutor(len(slots), context, _begin, (free, news)) as pool:
        waiting: dict[Future[Any], Job] = {pool.submit(_run, job.function, job.arguments): job for job in jobs}
        relay = threading.Thread(target=_relay, args=(news, progress), daemon=True)
        relay.start()
        for number, ended in enumerate(as_completed(waiting), start=1):
            if error := ended.exception():
                yield waiting[ended].name, error
            if progress:
                progress("runs", number, len(jobs))
        news.put(None)
        relay.join()


def _relay(news: Queue[tuple[str, int, int] | None], progress: Progress | None) -> None:
    while (item := news.get()) is not None:
        if progress:
            progress(*item)


_news: Any = None  # in a process of the pool: the queue to send progress to


def _begin(free: Queue[tuple[str, int, int]], news: Any) -> None:
    """Take a device before anything in this process looks at a GPU, and a fair part of its memory and of the cores."""
    global _news
    _news = news
    os.environ["CUDA_VISIBLE_DEVICES"], sharing, processes = free.get()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    if sharing > 1 and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(1 / sharing)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // processes))
    with suppress(ModuleNotFoundError):
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()


def _run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    function(*arguments, progress=lambda *state: _news.put(state))


def _end_with_parent() -> None:
    """End when the parent does: whoever starts it again must not meet an orphan that still writes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _reason(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "its process was ended from outside, perhaps for want of memory (fewer processes have more each)"
    text = " ".join(str(error).split())
    return text if isinstance(error, (ValueError, OSError)) else f"{type(error).__name__}: {text}"
