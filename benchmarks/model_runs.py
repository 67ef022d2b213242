"""What the benchmarks of whole models share: their options, their clock, and the way through their cases."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks.clock import Clock, CpuClock, SteppingClock
from benchmarks.options import at_least
from benchmarks.record import Line, about, default_path, finish, print_table, save, say_progress
from benchmarks.runner import Row

VOCAB, WIDTH = 50_257, 768
# Measures a case: its rows to be printed, and the same as stored.
Measure = Callable[[], tuple[list[Row], list[Line]]]


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """The model's size, the device, and where results go."""
    parser.add_argument("--vocab", type=at_least(2), default=VOCAB, help=f"tokens in the vocabulary (default {VOCAB})")
    parser.add_argument("--width", type=at_least(1), default=WIDTH, help=f"of the model (default {WIDTH}: GPT-2 small)")
    parser.add_argument("--cpu", action="store_true", help="on the CPU even where there is a GPU")
    parser.add_argument("--out", type=Path, help=f"where the CSV goes (default benchmarks/{name}-NAME.csv)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def wall_clock(cpu: bool) -> Clock:
    """Of a GPU where there is one, unless `cpu`; what the host does counts."""
    return SteppingClock() if torch.cuda.is_available() and not cpu else CpuClock()


def run_cases(
    name: str,
    args: argparse.Namespace,
    clock: Clock,
    how: str,
    cases: Sequence[tuple[str, Measure]],
    then: Callable[[list[Line]], None] | None = None,
) -> None:
    """Measure each case, print its table under its title (and what `then` says of it), and store all of them.

    `cases` are titles and what measures them; `how` says in a line how they are measured.
    """
    facts = about(clock.device) | {"rounds": args.rounds, "threads": torch.get_num_threads()}
    out = args.out or default_path(name, str(facts["hardware"]) if clock.device == "cuda" else "cpu")
    if not args.json:
        print(f"{facts['hardware']}, torch {facts['torch']}, transformers {facts['transformers']}")
        print(how)
    stored: list[Line] = []
    for done, (title, measure) in enumerate(cases):
        say_progress(done, len(cases), title)
        rows, found = measure()
        stored += found
        save(out, stored, facts)  # what is measured survives a crash
        if not args.json:
            print_table(title, rows)
            if then is not None:
                then(found)
    finish(out, stored, facts, args.json)
