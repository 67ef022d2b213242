"""Checks of what the kernels read and write: views of logits, every element of a buffer, nothing beside it."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from scalegrad.ops.rows import Objective, Rows
from scalegrad.sets import Members, NgramRepeat
from tests import oracles
from tests.ops.kernel_cases import (
    DTYPES,
    Objectives,
    judge_gradient,
    judge_loss,
    make_case,
    on,
    plain_errors,
    tile_edges,
    upstream_of,
    verify,
    within,
)

VIEWS = {
    "padded": lambda x: F.pad(x, (0, 7))[..., :-7],
    "odd address": lambda x: torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape),
    "transposed": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
}


def views(device: str, objectives: Objectives) -> None:
    """Logits that are a view of something else, in place and not; rows that share their memory, or their γ."""
    for objective in objectives:
        for i, (kind, view) in enumerate([(kind, view) for kind, view in VIEWS.items() for _ in range(2)]):
            inplace, dtype = i % 2 == 0, DTYPES[i % 3]
            case = make_case(objective, 37, steps=5)
            given, upstream = case.logits.to(dtype), upstream_of(case)
            leaf = given.clone().to(device).requires_grad_()
            loss = on(device, case).run(view(leaf), "triton", reduction="none", inplace=inplace)
            loss.backward(upstream.to(device))
            exact = case.expected(given)[1] * upstream.double()[..., None]
            what = f"{objective} {kind} {dtype}{' in place' if inplace else ''}"
            judge_gradient(what, leaf.grad, exact, plain_errors(case, given, upstream)[1])

        shared = make_case(objective, 37, rows=1, steps=5, ignored=0.0)
        shared.logits = shared.logits[:, :1].expand(-1, 5, -1)
        leaf = shared.logits[:, :1].to(device, torch.float32).requires_grad_()
        on(device, shared).run(leaf.expand(-1, 5, -1), "triton", reduction="sum").backward()
        exact = shared.expected(shared.logits.float())[1].sum(1, keepdim=True)
        judge_gradient(f"{objective} one row for all", leaf.grad, exact, 1e-6)
    one = make_case("SG", 37)
    one.strength = torch.tensor(0.3).expand(2, 6)
    one.per_position = True
    verify("SG one γ for all", one, torch.float32, device)


def writes(device: str, objectives: Objectives) -> None:
    """In place: the same bits as beside. In the middle of other memory: nothing before, between or after changes."""
    unit, _ = tile_edges()
    for objective in objectives:
        dtype = dict(zip(("CE", "SG", "UL"), DTYPES, strict=True))[objective]
        for vocab in (37, unit + 3):
            what = f"{objective} {vocab}"
            case = on(device, make_case(objective, vocab, steps=5))
            leaf = case.logits.to(device, dtype).requires_grad_()
            case.run(leaf, "triton", reduction="sum").backward()
            logits = leaf.detach().clone().requires_grad_() * 1
            case.run(logits, "triton", reduction="sum", inplace=True).backward()
            assert torch.equal(logits, leaf.grad), f"{what}: other bits in place"

            room = torch.full((12, vocab + 11), 7.0, dtype=dtype, device=device)
            rows = (slice(1, 11), slice(0, vocab))
            room[rows] = leaf.detach().view(10, vocab)
            outer = room.requires_grad_() * 1
            case.run(outer[rows].view(2, 5, vocab), "triton", reduction="sum", inplace=True).backward()
            beside = leaf.grad.view(10, vocab)  # elsewhere in its group each row sums in another order
            within(what, outer[rows], beside.double().cpu(), 2 * torch.finfo(dtype).eps)
            assert torch.equal(room.grad[rows], outer[rows]), f"{what}: something else arrives"
            outer.detach()[rows] = 7.0
            assert (outer == 7).all(), f"{what}: written outside the rows"


def ranges(device: str, objectives: Objectives) -> None:
    """The operator itself: NaN in the buffer it fills, weights of either sign, ranges of lists that come and go."""
    from scalegrad.ops import triton_logits

    ids = torch.tensor([[4, 9, 4, 30, -1, 0, 36], [1, 2, 3, 4, 5, 6, 7]], dtype=torch.int32)
    begin = torch.tensor([0, 0, 0, 2, 2, 0, 1, 3, 3, 0] * 2)
    end = torch.tensor([7, 5, 1, 7, 3, 0, 7, 4, 6, 7] * 2)
    line = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 0, 0] + [1] * 10)
    found = [set(ids[line[n], begin[n] : end[n]].tolist()) - {-1} for n in range(20)]
    targets = torch.tensor([4, 9, 4, 30, 0, 5, 6, 7, -1, 9] * 2)
    random = torch.Generator().manual_seed(0)
    weight = torch.randn(20, generator=random) * (targets >= 0)
    for vocab in (37, 40):
        logits = torch.randn(20, vocab, generator=random) * 3
        for objective in objectives:
            name, amount = {"UL": ("unlikelihood", 1.5)}.get(objective, ("scale_grad", 0.3))
            rows = Rows(*(x.to(device) for x in (targets, torch.full((20,), amount), weight)))
            members = Members(*(x.to(device) for x in (ids, line, begin, end)))
            grad = torch.full_like(logits, math.nan, device=device)
            losses = triton_logits.fill(logits.to(device), grad, rows, members, Objective(name))
            alone = triton_logits.fill(logits.to(device), None, rows, members, Objective(name))
            assert all(torch.equal(a, b) for a, b in zip(losses, alone, strict=True)), f"{name}: without a gradient"

            strength = float(torch.tensor(amount))
            rule = getattr(oracles, name)
            exact, truth = torch.zeros(20).double(), torch.zeros(20, vocab).double()
            for n in (targets >= 0).nonzero()[:, 0].tolist():
                loss, slope = rule(logits[n].tolist(), int(targets[n]), found[n], strength)
                exact[n], truth[n] = loss, torch.tensor(slope).double() * float(weight[n])
            judge_loss(f"{name} V={vocab}", losses.loss, exact, 2e-7)
            judge_gradient(f"{name} V={vocab}", grad, truth, 2e-7)


def lengths(device: str, objectives: Objectives) -> None:
    """As long as a list may be, and one longer; more rows to a program that keeps bits, and many ids at its
    start; lists of each row's own."""
    from scalegrad.ops import triton_logits

    shipped = triton_logits.MOST_LISTED, triton_logits.ROWS, triton_logits.LIST
    try:
        for objective in objectives:
            for most, rows in ((7, 16), (6, 2), (6, 32)):
                triton_logits.MOST_LISTED, triton_logits.ROWS = most, rows
                case = make_case(objective, 40, rows=5, steps=7, edges=(3, 9))
                verify(f"{objective} 7 places, a list has {most}", case, torch.float32, device)
            triton_logits.MOST_LISTED, triton_logits.ROWS, triton_logits.LIST = 6, 4, 2  # 2 ids, then 8 at a time
            long = make_case(objective, 40, rows=2, steps=33, edges=(14, 15))
            verify(f"{objective} many ids at a time", long, torch.float32, device)
            triton_logits.MOST_LISTED = 9
            for steps in (9, 10):
                own = make_case(objective, 37, steps=steps, token_set=NgramRepeat(1), edges=(7, 20))
                verify(f"{objective} lists of its own", own, torch.bfloat16, device)
    finally:
        triton_logits.MOST_LISTED, triton_logits.ROWS, triton_logits.LIST = shipped


def no_token(device: str, objectives: Objectives) -> None:
    """A target that the vocabulary does not have gives NaN in its own row and changes no other."""
    from scalegrad.ops import triton_logits

    for objective in objectives:
        name = {"UL": "unlikelihood"}.get(objective, "scale_grad")
        for vocab in (37, 40):
            random = torch.Generator().manual_seed(vocab)
            logits = torch.randn(9, vocab, generator=random).to(device)
            targets = torch.tensor([3, vocab, -1, 5, 2**40 + 1, 0, 2**31 - 1, vocab - 1, vocab + 7], device=device)
            ids = torch.tensor([[3, vocab, vocab + 1, 2**31 - 1, 5]], dtype=torch.int32, device=device)
            zero, five = torch.zeros(9, dtype=torch.int64, device=device), torch.full((9,), 5, device=device)
            bad = targets >= vocab
            results = []
            for k in (targets, torch.where(bad, -1, targets)):
                grad = torch.full_like(logits, 7.0)
                rows = Rows(k, torch.full((9,), 0.5, device=device), torch.ones(9, device=device))
                members = Members(ids if objective != "CE" else ids[:, :0], zero, zero, five * (objective != "CE"))
                losses = triton_logits.fill(logits, grad, rows, members, Objective(name))
                results.append((losses.loss, losses.nll, losses.seen_mass, grad))
            for loud, quiet in zip(*results, strict=True):
                assert loud[bad].isnan().all(), f"{objective} {vocab}: no NaN"
                assert torch.equal(loud[~bad], quiet[~bad]), f"{objective} {vocab}: another row changed"
                assert quiet.isfinite().all()


def scaling(device: str, objectives: Objectives) -> None:
    """`scale_`: by one number, by 1 (no bit changes), by one for each row; in float32, whatever the gradient is."""
    from scalegrad.ops import triton_logits

    def scaled(what: str, grad: torch.Tensor, factor: torch.Tensor) -> None:
        by = factor if factor.dim() == 0 else factor[:, None]
        expected = (grad.float() * by).to(grad.dtype).cpu()
        out = triton_logits.scale_(grad, factor)
        assert out.data_ptr() == grad.data_ptr(), what
        cut_off = grad.dtype == torch.bfloat16 and device == "cpu" and float(factor.abs().max()) != 1
        within(what, out, expected.double(), 0.008 * expected.double().abs() if cut_off else 0.0)

    random = torch.Generator().manual_seed(0)
    for dtype in DTYPES:
        for shape in ((5, 37), (300, 61), (7,)):
            factors = [torch.tensor(x) for x in (1.0, -0.3, 64.0)]
            for factor in factors + ([torch.linspace(-2, 2, shape[0])] if len(shape) == 2 else []):
                grad = torch.randn(shape, generator=random).to(device, dtype)
                scaled(f"scale_ {dtype} {shape}", grad, factor.to(device))
