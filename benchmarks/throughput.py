"""Training steps of a GPT-2-shaped model with the framework's own loss and with ours attached to the model.

`python -m benchmarks throughput`: forward, backward, clipping and AdamW as Hugging Face's Trainer does them, on a
GPU in bf16 where there is one, else on the CPU in float32. The contenders take turns on the same weights.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor

from benchmarks.cases import Batch, Case, make_batch
from benchmarks.clock import Clock, Contender
from benchmarks.exact import ALPHA, GAMMA, Outcome, exact_answers, judge
from benchmarks.model_runs import ModelOptions, run_cases, wall_clock
from benchmarks.options import check_counts
from benchmarks.record import Line, figure, lines
from benchmarks.runner import Measurement, Row, compare
from benchmarks.step import LOSS_TOLERANCE, gpt2_shaped
from scalegrad.counts import counted
from scalegrad.integrations import hf
from scalegrad.objectives import Objective
from scalegrad.options import FLAT

STEPS = 300
OBJECTIVES = {
    "CE framework": None,
    "CE scalegrad": Objective("mle"),
    "SG scalegrad": Objective("sg", GAMMA),
    "UL scalegrad": Objective("ul", ALPHA),
}
LEAST = 0.97  # of the throughput of the framework's own loss, and of our MLE, that ScaleGrad must have


def measure(case: Case, clock: Clock, rounds: int) -> list[Row]:
    """The four in turns. The learning rate is 0: every step does the same work on the same weights."""
    model = gpt2_shaped(case, clock.device)
    ids = make_batch(case, clock.device).targets
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)
    items = torch.tensor(ids[:, 1:].numel(), device=clock.device)

    def contender(name: str, objective: Objective | None) -> Contender:
        mine = model if objective is None else hf.attach(_twin(model), objective.loss())

        def run() -> Outcome:
            with torch.autocast(clock.device, dtype=case.dtype, enabled=case.dtype != torch.float32):
                loss = mine(input_ids=ids, labels=ids, num_items_in_batch=items).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return Outcome(loss, ())

        def prepare() -> tuple[Any, ...]:
            optimizer.zero_grad(set_to_none=True)
            return ()

        return Contender(name, run, prepare)

    contenders = [contender(name, objective) for name, objective in OBJECTIVES.items()]
    return compare(contenders, clock, check=_checker(model, ids, case, clock.device), rounds=rounds, patience=1e6)


def _twin(model: Any) -> Any:
    """Another model of the very same parameters: each contender its own forward, all one memory."""
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict(keep_vars=True), assign=True)
    twin.tie_weights()
    return twin


def _checker(model: Any, ids: Tensor, case: Case, device: str) -> Callable[[str, Outcome], float]:
    """Against float64 from the model's hidden states, what was seen including the first token."""
    with torch.no_grad(), torch.autocast(device, dtype=case.dtype, enabled=case.dtype != torch.float32):
        hidden = model.transformer(ids).last_hidden_state.to(case.dtype)
    # A first step from nothing makes the first token a target too. Its loss is log V whatever the objective.
    hidden = torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, :-1]], 1)
    weight = model.lm_head.weight.detach().to(case.dtype)
    answers = exact_answers(Batch((hidden, weight), ids, None), ("CE", "SG", "UL"))

    def check(name: str, outcome: Outcome) -> float:
        steps = case.steps
        expected = (answers.loss[name[:2]] * steps - math.log(case.vocab)) / (steps - 1)
        return judge({"loss": abs(float(outcome.loss.detach()) - expected)}, {"loss": LOSS_TOLERANCE * expected})

    return check


def throughput(case: Case, rows: list[Row]) -> list[Line]:
    """Stored lines: tokens a second, and that over the framework's own loss and over our MLE."""
    speeds = {row.name: case.tokens / row.seconds for row in rows if isinstance(row, Measurement)}

    def over(name: str, base: str) -> float | str | None:
        return figure(speeds[name] / speeds[base]) if name in speeds and base in speeds else None

    return [
        {
            **line,
            "tokens_per_second": figure(speeds.get(row.name)),
            "over_framework": over(row.name, "CE framework"),
            "over_mle": over(row.name, "CE scalegrad"),
        }
        for row, line in zip(rows, lines([(case.columns(), rows)]), strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """What `python -m benchmarks throughput` can be told."""

    rounds: int = 30
    """Steps of each contender."""
    batch: tuple[int, ...] = ()
    """Sequences in a step. May be repeated (default: 1, on a GPU also 32)."""
    length: int = STEPS
    """Tokens in a sequence."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, batch=1, length=2)


_OPTIONS = Options()


def command(options: Annotated[Options, FLAT] = _OPTIONS) -> None:
    """Training steps with the framework's own loss, and ours attached: MLE, ScaleGrad, unlikelihood.

    Example: python -m benchmarks throughput --batch 1 --batch 32
    """
    clock = wall_clock(options.cpu)
    gpu = clock.device == "cuda"
    dtype = torch.bfloat16 if gpu else torch.float32

    def measured(case: Case) -> tuple[list[Row], list[Line]]:
        rows = measure(case, clock, options.rounds)
        return rows, throughput(case, rows)

    cases = [
        Case(f"throughput {batch}", "step", batch, options.length, options.vocab, options.width, dtype=dtype)
        for batch in options.batch or ([1, 32] if gpu else [1])
    ]
    how = f"forward, backward, clipping and AdamW; median of {counted(options.rounds, 'interleaved step')} each"
    run_cases("throughput", options, clock, how, [(c.title, partial(measured, c)) for c in cases], _print_verdicts)


def _print_verdicts(stored: list[Line]) -> None:
    (scale_grad,) = (line for line in stored if line["implementation"] == "SG scalegrad")
    for base, name in (("over_framework", "the framework's own loss"), ("over_mle", "our γ = 1")):
        measured = scale_grad[base]
        known = isinstance(measured, float)
        verdict = "not measured" if not known else "ok" if float(str(measured)) >= LEAST else "MISS"
        print(f"throughput of SG over {name}: {measured if known else '–'} (at least {LEAST}): {verdict}")
