"""Checks that only a GPU can answer: real sizes, no waiting for the device, torch.compile, the same bits every time."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from scalegrad import functional as SF
from scalegrad.sets import Ids, NgramRepeat, Seen
from tests.ops.kernel_cases import Objectives, judge_gradient, judge_loss

STRENGTH = {"CE": 1.0, "SG": 0.2, "UL": 1.0}
LOGITS = {"CE": SF.scale_grad, "SG": SF.scale_grad, "UL": SF.unlikelihood}
LINEAR = {"CE": SF.linear_scale_grad, "SG": SF.linear_scale_grad, "UL": SF.linear_unlikelihood}


def batch(rows: int, steps: int, vocab: int, device: str, dtype: torch.dtype = torch.bfloat16, common: int = 0):
    """Logits [R, T, V] and targets, some ignored, drawn from the first `common` tokens (all, by default)."""
    random = torch.Generator(device).manual_seed(rows * steps + vocab)
    targets = torch.randint(0, common or vocab, (rows, steps), generator=random, device=device)
    logits = torch.randn(rows, steps, vocab, generator=random, device=device, dtype=torch.float32).mul_(3)
    logits.scatter_add_(2, targets.roll(3, 1)[..., None], torch.full_like(logits[..., :1], 6.0))  # the seen are likely
    targets[torch.rand(rows, steps, generator=random, device=device) < 0.1] = -100
    return logits.to(dtype), targets


def truth(objective: str, logits: torch.Tensor, targets: torch.Tensor, segments: torch.Tensor | None = None):
    """Loss [R, T] and its gradient, densely and in float64: `first[d, v]` is where document d first uses token v."""
    rows, steps, vocab = logits.shape
    place = torch.arange(rows * steps, device=logits.device).view(rows, steps)
    fresh = torch.zeros_like(targets)
    fresh[:, 0] = 1
    if segments is not None:
        fresh[:, 1:] = (segments[:, 1:] != segments[:, :-1]).long()
    document = fresh.flatten().cumsum(0).view(rows, steps) - 1
    kept = targets >= 0
    first = torch.full((int(document.max()) + 1, vocab), rows * steps, device=logits.device)
    used = (document * vocab + targets)[kept]
    first.view(-1).scatter_reduce_(0, used, place[kept], "amin")
    seen = first[document] < place[..., None]

    p = logits.double().softmax(-1)
    k = targets.clamp(min=0)[..., None]
    if objective != "UL":  # Eq. 4 to 6
        p = p * torch.where(seen, 1.0, STRENGTH[objective])
        p = p / p.sum(-1, keepdim=True)
    loss, grad = -p.gather(-1, k).log()[..., 0], p.clone()
    if objective == "UL":  # Eq. 2 and 7, α = 1
        p = torch.where(seen.scatter(-1, k, False), p, 0.0)
        loss = loss - torch.log1p(-p).sum(-1)
        odds = p / (1 - p)
        grad = grad * (1 - odds.sum(-1, keepdim=True)) + odds
    grad.scatter_add_(-1, k, torch.full_like(grad[..., :1], -1.0))
    return torch.where(kept, loss, 0.0), torch.where(kept[..., None], grad, 0.0)


def judge(what: str, objective: str, logits: torch.Tensor, targets: torch.Tensor, segments=None) -> None:
    leaf = logits.clone().requires_grad_()
    options = {"impl": "triton", "segments": segments, "reduction": "none"}
    loss = LOGITS[objective](leaf, targets, STRENGTH[objective], **options)
    loss.backward(torch.ones_like(loss))
    exact, grad = truth(objective, logits, targets, segments)
    judge_loss(f"{objective} {what}: loss", loss, exact, 1e-6)
    judge_gradient(f"{objective} {what}: gradient", leaf.grad, grad, 1e-6)


def practice(device: str, objectives: Objectives) -> None:
    """GPT-2's odd vocabulary and Llama 3's, tiles as shipped."""
    for objective in objectives:
        judge("N=333 V=50257", objective, *batch(3, 111, 50257, device, common=300))
        judge("N=64 V=128256", objective, *batch(2, 32, 128256, device, torch.float16))


def documents(device: str, objectives: Objectives) -> None:
    """One sequence of 131,072 tokens, and 8,192 tokens in 400 documents."""
    for objective in objectives:
        for vocab in (61, 64):
            judge("T=131072", objective, *batch(1, 131072, vocab, device))
        logits, targets = batch(1, 8192, 5003, device)
        segments = torch.arange(8192, device=device)[None] * 400 // 8192
        judge("400 documents", objective, logits, targets, segments)


def steady(device: str, objectives: Objectives) -> None:
    """Threads that race would not give the same bits thirty times."""
    for objective in objectives:
        for vocab in (50257, 4096):
            logits, targets = batch(4, 256, vocab, device, common=200)
            results = []
            for _ in range(30):
                leaf = logits.clone().requires_grad_()
                loss = LOGITS[objective](leaf, targets, STRENGTH[objective], impl="triton", reduction="none")
                loss.sum().backward()
                results.append((loss.detach(), leaf.grad.float()))
            for loss, grad in results[1:]:
                assert torch.equal(loss, results[0][0]), f"{objective} V={vocab}: the loss changes"
                assert torch.equal(grad, results[0][1]), f"{objective} V={vocab}: the gradient changes"


def waiting(device: str, objectives: Objectives) -> None:
    """Forward and backward never wait for the device, whatever the set."""
    torch.use_deterministic_algorithms(False)  # torch's own deterministic operators may wait
    calls = {
        "plain": {},
        "rows": {"reduction": "none"},
        "documents": {"segments": torch.arange(40, device=device).view(2, 20) // 7},
        "context": {
            "context": torch.arange(40, device=device).view(2, 20),
            "num_items": torch.tensor(7, device=device),
        },
        "no items": {"num_items": torch.tensor(0, device=device)},
        "source": {"source": torch.arange(6, device=device).view(2, 3)},
        "window": {"discourage": Seen(window=4)},
        "n-grams": {"discourage": NgramRepeat(2)},
        "exempt": {"discourage": Seen(exempt=[0, 3])},
        "ids": {"discourage": Ids([1, 2]) | Seen()},
        "head": {"softcap": 9.0, "logit_scale": 0.5, "label_smoothing": 0.1},
    }
    logits, targets = batch(2, 20, 503, device)
    head = [torch.randn(2, 20, 64, device=device).bfloat16(), torch.randn(503, 64, device=device).bfloat16()]

    def step(objective: str, impl: str, options: dict) -> None:
        leaf = logits.detach().requires_grad_()
        loss = LOGITS[objective](leaf * 1, targets, STRENGTH[objective], impl=impl, inplace=True, **options)
        (loss * 2).sum().backward()
        leaves = [x.detach().requires_grad_() for x in head]
        (LINEAR[objective](*leaves, targets, STRENGTH[objective], impl=impl, **options) * 2).sum().backward()

    for objective in objectives:
        for name, options in calls.items():
            step(objective, "triton", options)  # compiled, and loaded
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            try:
                for impl in ("triton", "auto"):
                    step(objective, impl, options)
            except RuntimeError as error:
                raise AssertionError(f"{objective}, {name}: waits for the device") from error
            finally:
                torch.cuda.set_sync_debug_mode("default")


def captured(device: str, objectives: Objectives) -> None:
    """Forward and backward of both forms as one CUDA graph, which nothing that waits can be part of."""
    torch.use_deterministic_algorithms(False)
    logits, targets = batch(4, 64, 5003, device, common=50)
    head = [torch.randn(4, 64, 64, device=device).bfloat16(), torch.randn(5003, 64, device=device).bfloat16()]
    calls = {
        "plain": {},
        "documents": {"segments": torch.arange(256, device=device).view(4, 64) // 7},
        "exempt": {"discourage": Seen(exempt=[0, 3])},
        "n-grams": {"discourage": NgramRepeat(2)},
    }

    def step(objective: str, options: dict) -> list[torch.Tensor]:
        leaves = [x.detach().requires_grad_() for x in (logits, *head)]
        loss = LOGITS[objective](leaves[0] * 1, targets, STRENGTH[objective], impl="triton", inplace=True, **options)
        fused = LINEAR[objective](*leaves[1:], targets, STRENGTH[objective], impl="triton", **options)
        return [loss, fused, *torch.autograd.grad(loss * 2 + fused * 3, leaves)]

    for objective in objectives:
        for name, options in calls.items():
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(2):
                    step(objective, options)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                results = step(objective, options)
            for _ in range(2):  # with other data in the same memory
                logits.copy_(logits.roll(1, 0))
                targets.copy_(targets.roll(1, 1))
                graph.replay()
                for ours, eager in zip(results, step(objective, options), strict=True):
                    error = (ours.double() - eager.double()).norm() / eager.double().norm()
                    assert error <= 1e-3, f"{objective}, {name}: as a graph it gives other numbers, by {error}"


def compiled(device: str, objectives: Objectives) -> None:
    """One graph with the model's head: the numbers of eager mode, inputs untouched, memory for a gradient."""
    for objective in objectives:
        _, targets = batch(4, 512, 50257, device)
        loss_of, fused, strength = LOGITS[objective], LINEAR[objective], STRENGTH[objective]

        def step(hidden, weight, loss_of=loss_of, fused=fused, strength=strength, targets=targets):
            loss = loss_of(F.linear(hidden, weight), targets, strength, inplace=True)
            return loss + fused(hidden[:, :50].tanh(), weight, targets[:, :50], strength)

        random = torch.Generator(device).manual_seed(0)
        shapes = ((4, 512, 64), (50257, 64))
        given = [torch.randn(shape, generator=random, device=device).bfloat16() for shape in shapes]
        results, peaks = [], []
        for call in (torch.compile(step, fullgraph=True), step):
            for _ in range(2):
                leaves = [x.clone().requires_grad_() for x in given]
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                loss = call(*leaves)
                (loss * 2).backward()
                peak = torch.cuda.max_memory_allocated() - before
            assert all(torch.equal(leaf, x) for leaf, x in zip(leaves, given, strict=True)), "an input changed"
            results.append([loss.detach().double(), *(leaf.grad.double() for leaf in leaves)])
            peaks.append(peak)
        off = [float((ours - eager).norm() / eager.norm()) for ours, eager in zip(*results, strict=True)]
        assert all(x <= 0.01 for x in off), f"{objective}: compiled, loss and gradients differ by {off}"
        logits = 4 * 512 * 50257 * 2
        assert peaks[0] <= peaks[1] + 1.5 * logits, f"{objective}: compiled {peaks[0] / logits:.2f} logits of memory"


def twice(device: str, objectives: Objectives) -> None:
    """Two losses on the same logits, and a graph that is kept."""
    logits, targets = batch(2, 40, 1003, device, torch.float32)
    for objective in objectives:
        strength = STRENGTH[objective]
        leaf = logits.clone().requires_grad_()
        loss = LOGITS[objective](leaf, targets, strength, impl="triton") + F.cross_entropy(leaf.mT, targets)
        loss.backward(retain_graph=True)
        once = leaf.grad.clone()
        (3 * loss).backward()
        assert torch.allclose(leaf.grad, 4 * once, atol=1e-7), f"{objective}: a kept graph gives another gradient"
        kept = int((targets >= 0).sum())
        exact = truth(objective, logits, targets)[1] / kept + truth("CE", logits, targets)[1] / kept
        judge_gradient(f"{objective}: two losses", once, exact, 1e-8)


def memory(device: str, objectives: Objectives) -> None:
    """In place: at most 1% of the logits; beside: the gradient and that."""
    logits, targets = batch(8, 1024, 50257, device)
    one = torch.ones((), device=device, dtype=logits.dtype, requires_grad=True)
    size = logits.numel() * logits.element_size()
    for objective in objectives:
        for inplace, most in ((True, 0.01), (False, 1.01)):
            for _ in range(2):
                given = logits * one
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                loss = LOGITS[objective](given, targets, STRENGTH[objective], impl="triton", inplace=inplace)
                (grad,) = torch.autograd.grad(2 * loss, given)
                peak = (torch.cuda.max_memory_allocated() - before) / size
                assert (grad.data_ptr() == given.data_ptr()) == inplace
                del grad, loss, given
            assert peak <= most, f"{objective}{' in place' if inplace else ''}: {peak:.4f} of the logits' memory"
