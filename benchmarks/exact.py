"""The right answers in float64 on the same rounded inputs, and how far a result is from them.

They come from the dense reference of the losses, block by block; the tests hold that to loops in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.cases import Batch
from benchmarks.runner import WrongResult
from scalegrad.ops import reference
from scalegrad.ops.rows import Objective, Rows

GAMMA, ALPHA = 0.2, 1.0
OBJECTIVES = {  # γ = 1 is cross-entropy
    "CE": (Objective("scale_grad"), 1.0),
    "SG": (Objective("scale_grad"), GAMMA),
    "UL": (Objective("unlikelihood"), ALPHA),
}
CHUNK = 2**24  # elements of a block of logits in float64
SAMPLE = 64  # rows whose gradient is looked at; and 2 × as many tokens of the weight's

# What a loss that is not ours may err by: it need only compute the same function (some drop small gradients).
PEER_LOSS, PEER_GRADIENT = 0.02, 0.1


class Outcome(NamedTuple):
    """What a contender gives: the mean loss and the gradients of the case's inputs."""

    loss: Tensor
    grads: tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Answers:
    """Losses, and gradients where they are looked at, by objective."""

    loss: dict[str, float]
    grads: dict[str, tuple[Tensor, ...]]  # [R, V]; or [R, D] and [K, D]
    rows: Tensor  # [R] rows of the logits or of the hidden states
    ids: Tensor  # [K] rows of the weight

    def look(self, grads: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The part of a contender's gradients that the answers cover."""
        first = grads[0].detach().flatten(0, -2)[self.rows].double()
        return (first, *(g.detach()[self.ids].double() for g in grads[1:]))


@torch.no_grad()
def exact_answers(batch: Batch, objectives: tuple[str, ...]) -> Answers:
    """Mean loss over all rows, and gradients at a sample of rows (of the weight: common tokens and some others)."""
    vocab = batch.inputs[-1].shape[0] if len(batch.inputs) == 2 else batch.inputs[0].shape[-1]
    count, device = batch.targets.numel(), batch.targets.device
    rows = torch.linspace(0, count - 1, min(SAMPLE, count), device=device).long()
    common = torch.arange(min(SAMPLE, vocab), device=device)
    others = torch.linspace(len(common), vocab - 1, min(SAMPLE, vocab - len(common)), device=device).long()
    ids = torch.cat([common, others])

    loss = dict.fromkeys(objectives, 0.0)
    sampled: dict[str, list[Tensor]] = {name: [] for name in objectives}
    d_weight = {name: torch.zeros(len(ids), batch.inputs[-1].shape[-1], device=device).double() for name in objectives}
    for at, logits, seen in _blocks(batch, vocab):
        targets = batch.targets.flatten()[at]
        mine = rows[(rows >= at.start) & (rows < at.stop)] - at.start
        for name in objectives:
            losses, grad = _objective(name, logits, seen, targets)
            loss[name] += float(losses.sum()) / count
            sampled[name].append(grad[mine] / count)
            if len(batch.inputs) == 2:
                hidden = batch.inputs[0].flatten(0, -2)[at].double()
                d_weight[name] += grad[:, ids].T @ hidden / count
    grads: dict[str, tuple[Tensor, ...]] = {}
    for name in objectives:
        of_logits = torch.cat(sampled[name])
        linear = len(batch.inputs) == 2
        grads[name] = (of_logits @ batch.inputs[1].double(), d_weight[name]) if linear else (of_logits,)
    return Answers(loss, grads, rows, ids)


def _blocks(batch: Batch, vocab: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of rows: logits [n, V] in float64, and which tokens were seen, [n, V]."""
    targets = batch.targets.flatten()
    count, device = targets.numel(), targets.device
    row = torch.arange(batch.targets.shape[0], device=device)[:, None].expand_as(batch.targets)
    if batch.segments is not None:
        row = row * (int(batch.segments.max()) + 1) + batch.segments
    document = row.flatten()
    place = torch.arange(count, device=device)
    first = torch.full((int(document.max()) + 1, vocab), count, device=device)
    first.view(-1).scatter_reduce_(0, document * vocab + targets, place, "amin")
    head = batch.inputs[1].double() if len(batch.inputs) == 2 else None
    values = batch.inputs[0].flatten(0, -2)
    size = max(1, CHUNK // vocab)
    for begin in range(0, count, size):
        at = slice(begin, min(begin + size, count))
        logits = values[at].double()
        yield at, logits if head is None else logits @ head.T, first[document[at]] < place[at, None]


def _objective(name: str, logits: Tensor, seen: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Loss [n] and its gradient with respect to the logits [n, V]."""
    objective, strength = OBJECTIVES[name]
    rows = Rows(targets, torch.full_like(targets, strength, dtype=torch.float64), torch.ones_like(logits[:, 0]))
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        loss = reference.losses(leaf, rows, seen, objective).loss
        (grad,) = torch.autograd.grad(loss.sum(), leaf)
    return loss.detach(), grad


# ---- errors and what they may be -------------------------------------------------------------------------------------


def errors(outcome: Outcome, answers: Answers, objective: str, dtype: torch.dtype) -> dict[str, float]:
    """By name: of the loss, of each gradient relative to its norm, and of a logits' gradient element by element."""
    exact = answers.grads[objective]
    found = answers.look(outcome.grads)
    names = ("logits",) if len(exact) == 1 else ("hidden states", "weight")
    out = {"loss": abs(float(outcome.loss.detach()) - answers.loss[objective])}
    for name, a, b in zip(names, found, exact, strict=True):
        out[f"gradient of the {name}"] = float((a - b).norm() / b.norm())
    if len(exact) == 1:
        difference = (found[0] - exact[0]).abs()
        # Where a gradient cancels to almost nothing, float32 arithmetic has an absolute error.
        ulps = difference / (torch.finfo(dtype).eps * exact[0].abs() + 2**-22 * exact[0].abs().max())
        out["largest error of a logit's gradient"] = float(difference.max())
        out["error of a logit's gradient in ulps"] = float(ulps.square().mean().sqrt())
        out["worst error of a logit's gradient in ulps"] = float(ulps.max())
    return out


def bounds(plain: dict[str, float], answers: Answers, objective: str, dtype: torch.dtype) -> dict[str, float]:
    """What our own losses may err by, from what plain torch errs by on the same inputs with its cross-entropy.

    Loss and gradients of logits and hidden states: 1.05 × plain torch's plus one ulp; of the weight: 2 ×. No element
    of a logits' gradient errs by more than 4 × plain torch's worst, which one that is never written would.
    """
    ulp = torch.finfo(dtype).eps
    largest = float(answers.grads[objective][0].abs().max())
    extra = {"loss": ulp * abs(answers.loss[objective]), "largest error of a logit's gradient": ulp * largest}
    out = {}
    for name, error in plain.items():
        if name == "gradient of the weight":
            out[name] = 2 * error
        elif name.startswith("worst"):
            out[name] = 4 * error + 1
        else:
            out[name] = 1.05 * error + extra.get(name, 1 if name.endswith("ulps") else ulp)
    return out


def judge(errors: dict[str, float], bounds: dict[str, float]) -> float:
    """The largest error over its bound; above 1 (or NaN) it raises `WrongResult`.

    >>> judge({"loss": 0.5, "gradient": 0.1}, {"loss": 1.0, "gradient": 0.4})
    0.5
    """
    for name, bound in bounds.items():
        if not errors[name] <= bound:
            message = f"wrong: {name} {errors[name]:.2g}, bound {bound:.2g}"
            raise WrongResult(message, errors[name] / bound if bound else float("inf"))
    return worst(errors, bounds)


def worst(errors: dict[str, float], bounds: dict[str, float]) -> float:
    """The largest error over its bound, whatever it is."""
    return max((errors[name] / bound for name, bound in bounds.items() if bound), default=0.0)


def peer_bounds(answers: Answers, objective: str) -> dict[str, float]:
    """What other people's losses may err by."""
    names = ("logits",) if len(answers.grads[objective]) == 1 else ("hidden states", "weight")
    gradients = {f"gradient of the {name}": PEER_GRADIENT for name in names}
    return {"loss": PEER_LOSS * abs(answers.loss[objective]), **gradients}
