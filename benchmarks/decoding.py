"""Decoding with a cache that has room for the whole text beside the library's own, which copies it at every step.

`python -m benchmarks decoding`: a GPT-2-shaped model of random weights in float32, as `scalegrad evaluate` decodes
the paper's prefixes of 50 tokens; on a GPU where there is one. The two take turns, and must write the same texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor

from benchmarks.cases import Case, make_batch
from benchmarks.clock import Clock, Contender
from benchmarks.model_runs import ModelOptions, run_cases, wall_clock
from benchmarks.options import check_counts
from benchmarks.record import Line, figure, lines
from benchmarks.runner import Measurement, Row, WrongResult, compare
from benchmarks.step import gpt2_shaped
from scalegrad.counts import counted
from scalegrad.decoding import generation_arguments, parse
from scalegrad.options import FLAT

PROMPT = 50
MOST_DIFFERENT = 0.02  # of the texts: where two tokens are as likely, the last bit decides
CASES = {
    "cuda": (("greedy", 512, 100), ("greedy", 2048, 100), ("greedy", 512, 300), ("beam=10", 32, 100)),
    "cpu": (("greedy", 32, 100), ("beam=5", 4, 50)),
}  # strategy, rows, new tokens


def measure(strategy: str, case: Case, clock: Clock, rounds: int) -> list[Row]:
    """The library's cache, then ours; `case.steps` are prompt and new tokens."""
    model = gpt2_shaped(case, clock.device).eval()
    model.generation_config.update(use_cache=True, eos_token_id=None)
    prompts = make_batch(case, clock.device).targets[:, :PROMPT].contiguous()
    contenders = [
        Contender("cache of the library", partial(_decode, model, prompts, strategy, case, roomy=False)),
        Contender("cache of scalegrad", partial(_decode, model, prompts, strategy, case, roomy=True)),
    ]
    return compare(contenders, clock, check=_checker(), rounds=rounds, patience=30)


def _decode(model: Any, prompts: Tensor, strategy: str, case: Case, *, roomy: bool) -> Tensor:
    inputs = {"input_ids": prompts, "attention_mask": torch.ones_like(prompts)}
    arguments = generation_arguments(model, inputs, strategy, new_tokens=case.steps - PROMPT)
    if not roomy:
        del arguments["past_key_values"]
    found: Tensor = model.generate(**inputs, **arguments)
    return found


def _checker() -> Callable[[str, Tensor], float]:
    """The first texts are what the others must be."""
    first: list[Tensor] = []

    def check(name: str, texts: Tensor) -> float:
        first.append(texts)
        different = float((texts != first[0]).any(dim=1).double().mean())
        if different > MOST_DIFFERENT:
            raise WrongResult(f"{name}: {different:.1%} of the texts are others", different / MOST_DIFFERENT)
        return different / MOST_DIFFERENT

    return check


def stored_lines(strategy: str, case: Case, rows: list[Row]) -> list[Line]:
    """With the strategy, and new tokens a second."""
    new = case.steps - PROMPT
    columns = {"case": _title(strategy, case), "strategy": strategy, "rows": case.batch, "new_tokens": new}
    speeds = [figure(case.batch * new / row.seconds) if isinstance(row, Measurement) else None for row in rows]
    found = lines([(columns | {"vocab": case.vocab, "width": case.width}, rows)])
    return [line | {"tokens_per_second": speed} for line, speed in zip(found, speeds, strict=True)]


def _title(strategy: str, case: Case) -> str:
    return f"{strategy}, {counted(case.batch, 'text')} of {PROMPT} + {case.steps - PROMPT} tokens"


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """What `python -m benchmarks decoding` can be told."""

    rounds: int = 5
    """How often each is timed."""
    strategy: str | None = None
    """This one alone, such as beam=5 (default: greedy and beam search)."""
    rows: int = 32
    """Texts at once, with --strategy."""
    new_tokens: int = 100
    """Tokens of each, with --strategy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, rows=1, new_tokens=1)


_OPTIONS = Options()


def command(options: Annotated[Options, FLAT] = _OPTIONS) -> None:
    """Decoding with our cache, which has room for the whole text, beside the library's own.

    Example: python -m benchmarks decoding --strategy greedy --rows 64 --new-tokens 200
    """
    clock = wall_clock(options.cpu)

    def measured(strategy: str, case: Case) -> tuple[list[Row], list[Line]]:
        rows = measure(strategy, case, clock, options.rounds)
        return rows, stored_lines(strategy, case, rows)

    chosen = (
        [(str(parse(options.strategy)), options.rows, options.new_tokens)] if options.strategy else CASES[clock.device]
    )
    cases = [
        (strategy, Case("decoding", "decoding", rows, PROMPT + new, options.vocab, options.width, dtype=torch.float32))
        for strategy, rows, new in chosen
    ]
    how = f"float32, width {options.width}, V {options.vocab}; median of at most {options.rounds} in turns"
    run_cases("decoding", options, clock, how, [(_title(*case), partial(measured, *case)) for case in cases])
