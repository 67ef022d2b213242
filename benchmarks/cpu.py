"""The losses on a CPU beside plain cross-entropy and the dense formulation: `python -m benchmarks cpu`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from benchmarks.cases import Case
from benchmarks.ceilings import measure_ceilings
from benchmarks.clock import CpuClock
from benchmarks.losses import Settings, measure_case
from benchmarks.options import Timing, check_counts
from benchmarks.record import Result, about, finish, lines, print_table, say_progress
from scalegrad.counts import counted
from scalegrad.options import FLAT

VOCAB = 50_257
SHAPES = ((1, 300), (4, 512))
LOSSES = ("CE torch eager", "SG scalegrad", "UL scalegrad", "SG dense")


@dataclass(frozen=True, kw_only=True)
class Options(Timing):
    """What `python -m benchmarks cpu` can be told."""

    vocab: int = VOCAB
    """Tokens in the vocabulary."""

    def __post_init__(self) -> None:
        check_counts(self, rounds=1, vocab=2)


_OPTIONS = Options()


def command(options: Annotated[Options, FLAT] = _OPTIONS) -> None:
    """The losses on a CPU beside plain cross-entropy and the dense formulation.

    Example: python -m benchmarks cpu
    """
    facts = about("cpu")
    if not options.json:
        print(f"{facts['hardware']}, torch {facts['torch']}; forward + backward, median of {options.rounds} in turns")
    settings = Settings("torch", inplace=False, rounds=options.rounds, patience=8.0)
    clock, results = CpuClock(), list[Result]()
    counts = sorted({1, os.cpu_count() or 1})
    for threads in counts:
        torch.set_num_threads(threads)
        ceilings = measure_ceilings(clock, torch.float32, elements=2**26, side=1024, rounds=3)
        for batch, steps in SHAPES:
            case = Case(f"{batch}x{steps}", "cpu", batch, steps, options.vocab, losses=LOSSES, dtype=torch.float32)
            title = f"{case.title}, {counted(threads, 'thread')}"
            say_progress(len(results), len(counts) * len(SHAPES), title)
            rows = measure_case(case, settings, clock, ceilings)
            results.append(({**case.columns(), "threads": threads}, rows))
            if not options.json:
                print_table(title, rows)
    finish(options.out or Path("benchmarks/cpu.csv"), lines(results), facts, options.json)
