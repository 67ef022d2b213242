"""What the benchmarks of whole models share: their options, their clock, and the way through their cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from benchmarks.clock import Clock, CpuClock, SteppingClock
from benchmarks.options import Timing, check_counts
from benchmarks.record import Line, about, default_path, finish, print_table, save, say_progress
from benchmarks.runner import Row

VOCAB, WIDTH = 50_257, 768
# Measures a case: its rows to be printed, and the same as stored.
Measure = Callable[[], tuple[list[Row], list[Line]]]


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Timing):
    """The model's size and the device."""

    vocab: int = VOCAB
    """Tokens in the vocabulary."""
    width: int = WIDTH
    """Width of the model (768: GPT-2 small)."""
    cpu: bool = False
    """On the CPU even where there is a GPU."""

    def __post_init__(self) -> None:
        check_counts(self, rounds=1, vocab=2, width=1)


def wall_clock(cpu: bool) -> Clock:
    """Of a GPU where there is one, unless `cpu`; what the host does counts."""
    return SteppingClock() if torch.cuda.is_available() and not cpu else CpuClock()


def run_cases(
    name: str,
    options: ModelOptions,
    clock: Clock,
    how: str,
    cases: Sequence[tuple[str, Measure]],
    then: Callable[[list[Line]], None] | None = None,
) -> None:
    """Measure each case, print its table under its title (and what `then` says of it), and store all of them.

    `cases` are titles and what measures them; `how` says in a line how they are measured.
    """
    facts = about(clock.device) | {"rounds": options.rounds, "threads": torch.get_num_threads()}
    out = options.out or default_path(name, str(facts["hardware"]) if clock.device == "cuda" else "cpu")
    if not options.json:
        print(f"{facts['hardware']}, torch {facts['torch']}, transformers {facts['transformers']}")
        print(how)
    stored: list[Line] = []
    for done, (title, measure) in enumerate(cases):
        say_progress(done, len(cases), title)
        rows, found = measure()
        stored += found
        save(out, stored, facts)  # what is measured survives a crash
        if not options.json:
            print_table(title, rows)
            if then is not None:
                then(found)
    finish(out, stored, facts, options.json)
