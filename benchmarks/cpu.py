"""The losses on a CPU beside plain cross-entropy and the dense formulation: `python -m benchmarks cpu`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch

from benchmarks.cases import Case
from benchmarks.ceilings import measure_ceilings
from benchmarks.clock import CpuClock
from benchmarks.losses import Settings, measure_case
from benchmarks.options import at_least
from benchmarks.record import Result, about, finish, lines, print_table, say_progress
from scalegrad.counts import counted

VOCAB = 50_257
SHAPES = ((1, 300), (4, 512))
LOSSES = ("CE torch eager", "SG scalegrad", "UL scalegrad", "SG dense")


def main(argv: list[str]) -> None:
    """Print the tables and store them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks cpu", description=__doc__, epilog="example: python -m benchmarks cpu"
    )
    parser.add_argument("--rounds", type=at_least(1), default=7, help="how often each is timed (default 7)")
    parser.add_argument("--vocab", type=at_least(2), default=VOCAB, help="tokens in the vocabulary")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/cpu.csv"), help="where the results go")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    args = parser.parse_args(argv)
    facts = about("cpu")
    if not args.json:
        print(f"{facts['hardware']}, torch {facts['torch']}; forward + backward, median of {args.rounds} in turns")
    settings = Settings("torch", inplace=False, rounds=args.rounds, patience=8.0)
    clock, results = CpuClock(), list[Result]()
    counts = sorted({1, os.cpu_count() or 1})
    for threads in counts:
        torch.set_num_threads(threads)
        ceilings = measure_ceilings(clock, torch.float32, elements=2**26, side=1024, rounds=3)
        for batch, steps in SHAPES:
            case = Case(f"{batch}x{steps}", "cpu", batch, steps, args.vocab, losses=LOSSES, dtype=torch.float32)
            title = f"{case.title}, {counted(threads, 'thread')}"
            say_progress(len(results), len(counts) * len(SHAPES), title)
            rows = measure_case(case, settings, clock, ceilings)
            results.append(({**case.columns(), "threads": threads}, rows))
            if not args.json:
                print_table(title, rows)
    finish(args.out, lines(results), facts, args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
