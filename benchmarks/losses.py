"""One case: its data, our losses beside other people's, checked against float64, then timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks import peers
from benchmarks.cases import Batch, Case, make_batch
from benchmarks.ceilings import Ceilings
from benchmarks.clock import Clock, Contender
from benchmarks.exact import ALPHA, GAMMA, Outcome, bounds, errors, exact_answers, judge, peer_bounds, worst
from benchmarks.runner import Row, compare
from scalegrad import functional as SF

IMPLS = {"triton": ("triton", "triton"), "torch": ("sparse", "chunked")}  # of logits and of hidden states


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Args:
        impl: of our own losses, a key of IMPLS.
        inplace: may our losses write the gradient over the logits (as Liger's always does)?
        rounds, patience: see `compare`.
    """

    impl: str
    inplace: bool
    rounds: int
    patience: float


def our_losses(linear: bool, settings: Settings) -> dict[str, peers.Loss]:
    """Ours by name, with the same arguments as the peers."""
    impl: Any = IMPLS[settings.impl][linear]
    strengths = {"CE": 1.0, "SG": GAMMA, "UL": ALPHA}  # γ = 1 is cross-entropy

    def loss_of(objective: str) -> peers.Loss:
        def loss(*arguments: Any) -> Tensor:
            *inputs, batch = arguments
            given = {"segments": batch.segments, "impl": impl}
            if linear:
                function: Any = SF.linear_unlikelihood if objective == "UL" else SF.linear_scale_grad
            else:
                function = SF.unlikelihood if objective == "UL" else SF.scale_grad
                given["inplace"] = settings.inplace
            value: Tensor = function(*inputs, batch.targets, strengths[objective], **given)
            return value

        return loss

    return {f"{name} scalegrad": loss_of(name) for name in strengths}


def measure_case(case: Case, settings: Settings, clock: Clock, ceilings: Ceilings) -> list[Row]:
    """Check and time each of the case's losses, forward and backward."""
    batch = make_batch(case, clock.device)
    fresh = _fresh_inputs(batch)
    known = (peers.LINEAR if case.width else peers.LOGITS) | our_losses(bool(case.width), settings)
    plain = _contender("plain", known["CE torch eager"], batch, fresh)
    check = _checker(case, batch, plain)
    return compare(
        [_contender(name, known[name], batch, fresh) for name in case.losses],
        clock,
        check=check,
        rounds=settings.rounds,
        patience=settings.patience,
        floor=case.floor(ceilings),
    )


def _contender(name: str, loss: peers.Loss, batch: Batch, fresh: Callable[[], tuple[Tensor, ...]]) -> Contender:
    def run(*inputs: Tensor) -> Outcome:
        value = loss(*inputs, batch)
        return Outcome(value, torch.autograd.grad(value, inputs))

    return Contender(name, run, fresh)


class _Produced(torch.autograd.Function):
    """The output of a model: not a leaf, so that its memory may be taken for the gradient."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, buffer: Tensor) -> Tensor:
        return buffer.data  # the same memory, and no view of it

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[None, None]:
        raise AssertionError("the gradient of the logits is what is asked for")


def _fresh_inputs(batch: Batch) -> Callable[[], tuple[Tensor, ...]]:
    """What makes the inputs of each run, outside its time. Logits may be overwritten: they are copied every time."""
    if len(batch.inputs) > 1:
        return lambda: tuple(x.detach().requires_grad_() for x in batch.inputs)
    (logits,) = batch.inputs
    buffer = torch.empty_like(logits)
    anchor = torch.zeros((), device=logits.device, requires_grad=True)

    def fresh() -> tuple[Tensor, ...]:
        buffer.copy_(logits)
        return (_Produced.apply(anchor, buffer),)  # type: ignore[no-untyped-call]

    return fresh


def _checker(case: Case, batch: Batch, plain: Contender) -> Callable[[str, Outcome], float]:
    """Ours are held to what plain torch errs by on these inputs; peers must compute the same function."""
    answers = exact_answers(batch, tuple({name[:2]: None for name in ("CE", *case.losses)}))
    plain_errors = errors(plain.run(*plain.prepare()), answers, "CE", case.dtype)

    def check(name: str, outcome: Outcome) -> float:
        objective = name[:2]
        found = errors(outcome, answers, objective, case.dtype)
        ours = name.endswith("scalegrad")
        allowed = bounds(plain_errors, answers, objective, case.dtype) if ours else peer_bounds(answers, objective)
        return worst(found, allowed) if name == peers.FILTERED else judge(found, allowed)

    return check
