"""Checks of the kernels on logits against the float64 loops, on a GPU or, through Triton's interpreter, on a CPU.

`tests.ops.kernel_run` runs them, each in a process of its own.
"""

from __future__ import annotations

import math

import torch

from scalegrad.sets import Ids, NgramRepeat, Seen
from tests.ops.kernel_cases import (
    DTYPES,
    Objectives,
    judge_gradient,
    judge_loss,
    make_case,
    on,
    tile_edges,
    verify,
)

# ---- the logits forms ------------------------------------------------------------------------------------------------


def vocabularies(device: str, objectives: Objectives) -> None:
    """Around the edges of units and tiles, odd and even: rows start at every place of an aligned group."""
    unit, tile = tile_edges()
    sizes = (2, 3, unit - 1, unit, unit + 1, tile - 1, tile, tile + 1, 2 * tile + 2 * unit + 53)
    for i, vocab in enumerate(sizes):
        for objective in objectives:
            steps = 3 if vocab > tile else 5
            inner = (unit - 1, unit, tile - 1, tile, 2 * tile, vocab - 2)
            case = make_case(objective, vocab, steps=steps, edges=inner)
            verify(objective, case, DTYPES[i % 3], device)


PLAIN_KERNEL = {  # the set changes, the kernel does not
    "documents": {"kinds": "segments"},
    "context": {"kinds": "context"},
    "source": {"kinds": "source segments"},
    "window": {"token_set": Seen(window=2), "kinds": "segments"},
    "n-grams": {"token_set": NgramRepeat(2), "kinds": "context"},
    "exempt": {"token_set": Seen(exempt=[0, 36]), "kinds": "source"},
    "combined": {"token_set": Seen(window=3) & ~Ids([0]) | NgramRepeat(2), "kinds": "segments"},
}
OTHER_KERNELS = {
    "smoothing": {"label_smoothing": 0.1, "kinds": "segments"},
    "soft cap": {"softcap": 5.0},
    "scale": {"logit_scale": 0.5},
    "head": {"softcap": 20.0, "logit_scale": 2.0, "label_smoothing": 0.3},
}
SCALE_GRAD_ALONE = {
    "γ each": {"kinds": "γ segments"},
    "small γ": {"strength": 0.01},
    "complement": {"token_set": ~Seen(), "strength": 0.01},
    "complement of nothing": {"token_set": ~Ids([])},
    "complement, exempt": {"token_set": ~Seen(exempt=[0]), "label_smoothing": 0.1, "kinds": "γ"},
}


def sets(device: str, objectives: Objectives) -> None:
    """Two rows of 12 steps: in an aligned vocabulary a program takes neighbouring steps and sees sequences change."""
    for i, (name, options) in enumerate(PLAIN_KERNEL.items()):
        for objective in objectives:
            if objective == "CE":
                continue
            case = make_case(objective, (37, 40)[i % 2], steps=12, seed=i, edges=(7, 20), **options)
            verify(f"{objective} {name}", case, DTYPES[i % 3], device)


def settings(device: str, objectives: Objectives) -> None:
    options = [(objective, name) for name in OTHER_KERNELS for objective in objectives]
    options += [("SG", name) for name in SCALE_GRAD_ALONE if "SG" in objectives]
    for i, (objective, name) in enumerate(options):
        case = make_case(objective, 37, steps=6, seed=i, edges=(7, 20), **{**OTHER_KERNELS, **SCALE_GRAD_ALONE}[name])
        verify(f"{objective} {name}", case, DTYPES[i % 3], device)


def sizes(device: str, objectives: Objectives) -> None:
    """No row, one row, one sequence, a row for every program and one over; a long list; one token."""
    for objective in objectives:
        for rows, steps in ((0, 4), (2, 0), (1, 1), (1, 9), (8, 8), (5, 13)):
            verify(objective, make_case(objective, 5, rows=rows, steps=steps, seed=1), torch.float32, device)
        verify(objective, make_case(objective, 1, ignored=0.0), torch.float32, device)
        verify(f"{objective} all ignored", make_case(objective, 37, ignored=1.0), torch.bfloat16, device)
        long = make_case(objective, 40, steps=3, kinds="source", edges=(1, 5, 9, 12, 20, 30))
        long.data["source"] = torch.tensor([[0, 39, 5] * 300 + [9], [1, 12] * 450 + [20]])  # more than a look takes in
        verify(f"{objective} long lists", long, torch.float32, device)


# ---- extreme logits --------------------------------------------------------------------------------------------------


def extremes(device: str, objectives: Objectives) -> None:
    for objective in objectives:
        huge = make_case(objective, 37, spread=1e4, seed=1)
        huge.logits.clamp_(-1e4, 1e4)
        verify(f"{objective} huge", huge, torch.float32, device)
        high = make_case(objective, 37, seed=2)
        high.logits += 1e4
        verify(f"{objective} high", high, torch.float32, device)
        level = make_case(objective, 37, spread=0.4)
        level.logits.round_()  # several are the largest
        verify(f"{objective} ties", level, torch.bfloat16, device)

        masked = make_case(objective, 37, seed=3, ignored=0.0)
        masked.logits[:, :, [3, 20]] = -math.inf  # tokens that are forbidden, never the target
        masked.logits[0, 1, 5:36] = -math.inf
        verify(f"{objective} forbidden tokens", masked, torch.float32, device)
        masked.settings["label_smoothing"] = 0.1  # then the loss is infinite, as torch's is; the gradient is not
        verify(f"{objective} forbidden tokens, smoothed", masked, torch.float32, device)
        masked.settings.clear()
        masked.logits = masked.logits.clamp(min=torch.finfo(torch.bfloat16).min)
        verify(f"{objective} forbidden by the lowest number", masked, torch.bfloat16, device)
    target = make_case("SG", 37, seed=4, ignored=0.0)
    target.logits[0, 2, target.targets[0, 2]] = -math.inf
    verify("SG a forbidden target", target, torch.float32, device)


def leads(device: str, objectives: Objectives) -> None:
    """One token ahead of all others by 80 or 1,000 nats: a negative, the target, and neither."""
    for objective in objectives:
        for i, lead in enumerate((20.0, 80.0, 1000.0)):
            case = make_case(objective, 37, rows=1, steps=8, ignored=0.0, seed=i, spread=1.0)
            case.targets[0] = torch.tensor([4, 9, 4, 9, 9, 4, 4, 30])
            top = torch.tensor([4, 9, 4, 4, 30, 30, 9, 9])  # step 1 on: target, target, negative, novel, …
            case.logits[0, torch.arange(8), top] = lead
            verify(f"{objective} a lead of {lead:g}", case, torch.float32, device)
            verify(f"{objective} a lead of {lead:g}", case, torch.bfloat16, device)


def nan(device: str, objectives: Objectives) -> None:
    """In ignored rows it is harmless; in others it reaches their loss and no other row."""
    for objective in objectives:
        for vocab in (37, 40):
            case = make_case(objective, vocab, steps=9, seed=3, ignored=0.4)
            clean = case.logits.clone()
            case.logits[case.targets < 0] = math.nan
            for inplace in (False, True):
                verify(f"{objective} ignored", case, torch.bfloat16, device, clean=clean, inplace=inplace)

            kept = make_case(objective, vocab, steps=9, ignored=0.0)
            spoilt = kept.logits.to(device, torch.float32)
            spoilt[0, 3] = math.nan
            spoilt[1, 5, 2] = math.nan
            spoilt.requires_grad_()
            loss = on(device, kept).run(spoilt, "triton", reduction="none")
            loss.sum().backward()
            bad = torch.zeros(2, 9, dtype=torch.bool)
            bad[0, 3] = bad[1, 5] = True
            assert torch.equal(loss.isnan().cpu(), bad), f"{objective} {vocab}: NaN in the loss"
            exact, grad, *_ = kept.expected(kept.logits.float())
            judge_loss(f"{objective} beside NaN", loss[~bad.to(device)], exact[~bad], 1e-6)
            judge_gradient(f"{objective} beside NaN", spoilt.grad[~bad.to(device)], grad[~bad], 1e-6)
