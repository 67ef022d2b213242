"""Batches that reach every path of the kernels, and how far a result may be from the float64 loops.

Nothing here draws at random from run to run: a case is its arguments and a seed.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.nn import functional as F

from scalegrad.sets import Seen
from tests.case import IGNORED, Case

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
Objectives = tuple[str, ...]  # of "CE" (ScaleGrad with γ = 1, for which no set is kept), "SG" and "UL"


def make_case(
    objective: str,
    vocab: int,
    *,
    rows: int = 2,
    steps: int = 6,
    seed: int = 0,
    token_set: object = None,
    kinds: str = "",
    spread: float = 3.0,
    ignored: float = 0.2,
    strength: float | None = None,
    edges: tuple[int, ...] = (),
    **settings: float,
) -> Case:
    """Few distinct targets, so that they repeat; they stand at both ends of the vocabulary and at `edges`.

    `kinds` names the data beside: "segments context source", and "γ" for one strength for each position.
    """
    random = torch.Generator().manual_seed(seed * 7919 + vocab)
    pool = torch.tensor(sorted({0, vocab - 1, vocab // 2, *(e for e in edges if e < vocab)}))

    def ids(*shape: int) -> torch.Tensor:
        return pool[torch.randint(0, len(pool), shape, generator=random)]

    def holes(values: torch.Tensor, share: float, value: int) -> torch.Tensor:
        return values.masked_fill(torch.rand(values.shape, generator=random) < share, value)

    logits = torch.randn(rows, steps, vocab, generator=random, dtype=torch.float64) * spread
    logits[..., pool] += 1.5 * spread  # what repeats is likely: the top is often seen, and sometimes the target
    data = {}
    if "segments" in kinds:
        data["segments"] = (torch.rand(rows, steps, generator=random) < 0.25).long().cumsum(1) % 3
    if "context" in kinds:
        data["context"] = holes(ids(rows, steps), 0.2, -1)
    if "source" in kinds:
        data["source"] = holes(ids(rows, 3), 0.2, -1)
    given = {"CE": 1.0, "SG": 0.2, "UL": 1.0}[objective] if strength is None else strength
    strengths = torch.full((rows, steps), given)
    if "γ" in kinds:
        strengths = torch.rand(rows, steps, generator=random) * 0.98 + 0.01
    return Case(
        logits,
        holes(ids(rows, steps), ignored, IGNORED),
        Seen() if token_set is None else token_set,
        "unlikelihood" if objective == "UL" else "scale_grad",
        strengths,
        "γ" in kinds,
        data,
        settings,
    )


def on(device: str, case: Case) -> Case:
    """The same with its integers on the device."""
    data = {name: value.to(device) for name, value in case.data.items()}
    return replace(case, targets=case.targets.to(device), strength=case.strength.to(device), data=data)


def upstream_of(case: Case) -> torch.Tensor:
    """What is asked of each row's gradient: of either sign and some size."""
    random = torch.Generator().manual_seed(5)
    return torch.randn(case.targets.shape, generator=random) * 2


def tile_edges() -> tuple[int, int]:
    """Columns of a unit and of a tile."""
    from scalegrad.ops import triton_logits, triton_tiles

    unit = 32 * triton_logits.WARPS * triton_tiles.WIDTH
    return unit, unit * triton_tiles.UNITS


# ---- what plain torch errs by ----------------------------------------------------------------------------------------


def plain_errors(case: Case, logits: torch.Tensor, upstream: torch.Tensor) -> tuple[float, float]:
    """Largest errors of torch's cross-entropy on the same logits and head: of its loss in float32, of its gradient."""
    mle = replace(case, objective="scale_grad", strength=torch.ones_like(case.strength))
    exact_loss, exact_grad, *_ = mle.expected(logits)
    leaf = logits.detach().clone().requires_grad_()
    x = leaf.float() * case.settings.get("logit_scale", 1.0)
    cap = case.settings.get("softcap")
    x = x if cap is None else cap * torch.tanh(x / cap)
    smoothing = case.settings.get("label_smoothing", 0.0)
    loss = F.cross_entropy(
        x.flatten(0, 1), case.targets.flatten(), reduction="none", label_smoothing=smoothing
    ).view_as(exact_loss)
    (grad,) = torch.autograd.grad(loss, leaf, upstream)
    grad_error = (grad.double() - exact_grad * upstream.double()[..., None]).abs()
    # The kernels' tanh is 1 − 2 / (e²ˣ + 1): a capped logit errs by the last place of the cap, not by its own.
    capped = 0.0 if cap is None else 2 * torch.finfo(torch.float32).eps * cap
    return _largest((loss.detach().double() - exact_loss).abs()) + capped, _largest(grad_error) + capped


def _largest(error: torch.Tensor) -> float:
    finite = error[error.isfinite()]
    return float(finite.max()) if finite.numel() else 0.0


# ---- judging ---------------------------------------------------------------------------------------------------------


def within(what: str, actual: torch.Tensor, exact: torch.Tensor, bound: torch.Tensor | float) -> None:
    """Every element, written and right; where the exact value is infinite, the same infinity."""
    actual = actual.detach().double().to(exact.device)
    error = torch.where(exact.isinf(), torch.where(actual == exact, 0.0, torch.inf), (actual - exact).abs())
    wrong = ~(error <= bound)  # NaN is wrong
    if wrong.any():
        ratio = (error / bound).nan_to_num(torch.inf)
        at = tuple(int(i) for i in torch.unravel_index(ratio.argmax(), error.shape))
        raise AssertionError(
            f"{what}: {int(wrong.sum())} of {wrong.numel()} beyond the bound; worst at {at}: "
            f"{float(actual[at])!r}, exactly {float(exact[at])!r}, {float(ratio[at]):.3g} × the bound"
        )


def judge_loss(what: str, actual: torch.Tensor, exact: torch.Tensor, plain: float, at_least: float = 1.0) -> None:
    """≤ 1.05 × plain torch's error and one ulp of the largest loss, in float32 whatever the logits are."""
    finite = exact[exact.isfinite()].abs()
    scale = max(at_least, float(finite.max())) if finite.numel() else at_least
    within(what, actual, exact, 1.05 * plain + _ulps(actual) * torch.finfo(torch.float32).eps * scale)


def judge_gradient(what: str, actual: torch.Tensor, exact: torch.Tensor, plain: float, at_least: float = 0.0) -> None:
    """≤ 1.05 × plain torch's largest error and one ulp; and each element to the last place of its own size."""
    info = torch.finfo(actual.dtype)
    largest = max(at_least, float(exact.abs().max())) if exact.numel() else 0.0
    ulp = _ulps(actual) * info.eps
    within(what, actual, exact, 1.05 * plain + ulp * largest)
    # Rounded twice: when it is made, and when what comes from upstream scales it. Float32 has an absolute error before.
    floor = 16 * torch.finfo(torch.float32).eps * largest + 2 * info.smallest_normal * info.eps
    within(f"{what}, element by element", actual, exact, 1.01 * ulp * exact.abs() + floor)


def _ulps(actual: torch.Tensor) -> float:
    """How many last places are forgiven: one. But a GPU's power of two and logarithm are good to two places of float32
    where numpy's are to half of one, and Triton's interpreter cuts bfloat16 off where a GPU rounds."""
    on_gpu = actual.device.type == "cuda"
    return {torch.float32: 4.0 if on_gpu else 1.0, torch.bfloat16: 1.0 if on_gpu else 2.0}.get(actual.dtype, 1.0)


# ---- both together ---------------------------------------------------------------------------------------------------


def verify(
    what: str, case: Case, dtype: torch.dtype, device: str, *, clean: torch.Tensor | None = None, **more
) -> None:
    """Loss, parts and gradient of a call. `clean`: the logits for the judge, where the kernel gets others."""
    what = f"{what} {str(dtype).removeprefix('torch.')} {list(case.logits.shape)}"
    given = case.logits.to(dtype)
    judged = given if clean is None else clean.to(dtype)
    upstream = upstream_of(case)
    leaf = given.clone().to(device).requires_grad_()
    parts = case.strength.ne(1).any() or case.objective == "unlikelihood"  # with them γ = 1 keeps its set
    out = on(device, case).run(leaf * 1, "triton", reduction="none", return_parts=bool(parts), **more)
    loss = out[0] if parts else out
    loss.backward(upstream.to(device))

    exact, grad, nll, mass, seen = case.expected(judged)
    plain_loss, plain_grad = plain_errors(case, judged, upstream)
    shift = float(case.strength.log().abs().max()) if case.strength.numel() else 0.0  # a term of ScaleGrad's
    judge_loss(f"{what}: loss", loss, exact, plain_loss, at_least=max(1.0, shift))
    # With one token every gradient is 1 − 1: a last place of these, for no gradient is larger.
    ones = float(upstream.abs().max()) if grad.shape[-1] == 1 and upstream.numel() else 0.0
    judge_gradient(f"{what}: gradient", leaf.grad, grad * upstream.double()[..., None], plain_grad, at_least=ones)
    if parts:
        judge_loss(f"{what}: nll", out[1].nll, nll, plain_loss)
        within(f"{what}: mass", out[1].seen_mass, mass, 4e-7)
        assert torch.equal(out[1].target_seen.cpu(), seen), f"{what}: target_seen"
