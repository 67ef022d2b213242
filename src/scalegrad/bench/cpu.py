"""The losses on a CPU beside plain cross-entropy and the dense formulation: `python -m scalegrad.bench cpu`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from scalegrad import functional as SF
from scalegrad.bench.record import hardware, print_table, save
from scalegrad.bench.runner import Measurement, WrongResult, compare

VOCAB = 50_257
SHAPES = ((1, 300), (4, 512))
GAMMA, ALPHA = 0.2, 1.0


def dense_scale_grad(logits: Tensor, targets: Tensor) -> Tensor:
    """The formulation of Eq. 4 as one would first write it: a [B, T, V] mask of novel tokens, rescale, renormalise."""
    p = logits.softmax(-1)
    seen = torch.zeros_like(p, dtype=torch.bool)
    for t in range(1, targets.shape[1]):
        seen[:, t] = seen[:, t - 1].scatter(1, targets[:, t - 1 : t], True)
    scaled = torch.where(seen, p, GAMMA * p)
    rescaled = scaled / scaled.sum(-1, keepdim=True)
    return F.nll_loss(rescaled.log().flatten(0, 1), targets.flatten())


def losses() -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """By name; plain cross-entropy first."""
    return {
        "cross-entropy, torch": lambda o, y: F.cross_entropy(o.flatten(0, 1), y.flatten()),
        "ScaleGrad, sparse": lambda o, y: SF.scale_grad(o, y, GAMMA, impl="sparse"),
        "unlikelihood, sparse": lambda o, y: SF.unlikelihood(o, y, ALPHA, impl="sparse"),
        "ScaleGrad, dense": dense_scale_grad,
    }


def run_case(batch: int, steps: int, threads: int, rounds: int, vocab: int = VOCAB) -> list[Measurement]:
    """Forward and backward of each loss on the same logits."""
    torch.set_num_threads(threads)
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(batch, steps, vocab, generator=random).mul_(3)
    # Half of the targets come from a small pool, so that tokens repeat as often as in text.
    targets = torch.randint(0, vocab, (batch, steps), generator=random)
    common = torch.randint(0, 200, (batch, steps), generator=random)
    targets = torch.where(torch.rand(batch, steps, generator=random) < 0.5, targets, common % vocab)

    def once(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            leaf = logits.detach().requires_grad_()
            loss(leaf, targets).backward()  # type: ignore[no-untyped-call]
            assert leaf.grad is not None
            return leaf.grad

        return run

    def check(name: str, grad: object) -> None:
        expected = exact.get(name.split(",")[0])
        error = 0.0 if expected is None else float((grad[0, :4] - expected).abs().max())  # type: ignore[index]
        if not error <= 1e-6:
            raise WrongResult(f"{name}: the gradient errs by {error:.1e}")

    exact = _exact_gradients(logits, targets)
    return compare(
        f"B={batch} T={steps} V={vocab} fp32, {threads} thread{'s' * (threads > 1)}",
        {name: once(loss) for name, loss in losses().items()},
        check=check,
        rounds=rounds,
        few={"ScaleGrad, dense": 2},
    )


def _exact_gradients(logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """The reference in float64 on the first steps of the first sequence."""
    scale = 4 / targets.numel()  # a mean over 4 targets becomes one over all
    first, labels = logits[:1, :4].double(), targets[:1, :4]
    exact = {}
    for name, loss, strength in (
        ("cross-entropy", SF.scale_grad, 1.0),
        ("ScaleGrad", SF.scale_grad, GAMMA),
        ("unlikelihood", SF.unlikelihood, ALPHA),
    ):
        leaf = first.clone().requires_grad_()
        exact[name] = torch.autograd.grad(loss(leaf, labels, strength, impl="reference"), leaf)[0][0] * scale
    return exact


def main(argv: list[str]) -> None:
    """Print the tables and store them."""
    parser = argparse.ArgumentParser(prog="python -m scalegrad.bench cpu", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/cpu.csv"), help="where the results go")
    args = parser.parse_args(argv)
    print(f"{hardware()}, torch {torch.__version__}; forward + backward, median of {args.rounds} interleaved rounds")
    table: list[Measurement] = []
    for threads in sorted({1, os.cpu_count() or 1}):
        for batch, steps in SHAPES:
            rows = run_case(batch, steps, threads, args.rounds)
            print_table(rows[0].case, rows)
            table += rows
    save(args.out, table)
    print(f"\nstored in {args.out}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
