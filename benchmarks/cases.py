"""What is measured: shapes, the data of each, and which losses run on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.ceilings import Ceilings

PLAIN = ("CE torch eager", "CE torch compiled", "CE Liger")
OURS = ("CE scalegrad", "SG scalegrad")


@dataclass(frozen=True)
class Case:
    """`batch` rows of `steps` tokens over `vocab`: logits in, or hidden states of `width` and the head's weight."""

    key: str  # what a requirement calls it, whatever its size
    group: str
    batch: int
    steps: int
    vocab: int
    width: int = 0  # 0: logits in
    documents: int = 0  # packed into each row; 0: a row is one
    losses: tuple[str, ...] = ()  # "CE …", "SG …", "UL …"; the first is what the others are compared with
    dtype: torch.dtype = torch.bfloat16

    @property
    def tokens(self) -> int:
        return self.batch * self.steps

    @property
    def title(self) -> str:
        """
        >>> Case("k", "packed", 1, 8192, 50257, documents=400).title
        'logits 1×8192, V 50257, 400 documents, bf16'
        """
        name = {torch.bfloat16: "bf16", torch.float32: "fp32"}[self.dtype]
        if self.group == "step":
            return f"training step {self.batch}×{self.steps}, V {self.vocab}, {name}"
        form = "hidden" if self.width else "logits"
        width = f", D {self.width}" if self.width else ""
        packed = f", {self.documents} documents" if self.documents else ""
        return f"{form} {self.batch}×{self.steps}, V {self.vocab}{width}{packed}, {name}"

    @property
    def logits_bytes(self) -> int:
        """
        >>> Case("k", "logits", 8, 1024, 50257).logits_bytes / 2**20  # MiB, in bf16
        785.265625
        """
        return self.tokens * self.vocab * self.dtype.itemsize

    @property
    def gradient_bytes(self) -> int:
        """Of the gradients a caller gets: the logits', or those of hidden states and weight."""
        if not self.width:
            return self.logits_bytes
        return (self.tokens + self.vocab) * self.width * self.dtype.itemsize

    def floor(self, ceilings: Ceilings) -> float | None:
        """Logits: read and written once. Hidden states: three matrix products. A whole training step: not counted."""
        if self.group == "step":
            return None
        if self.width:
            return ceilings.floor(flops=3 * 2 * self.tokens * self.vocab * self.width)
        return ceilings.floor(moved=2 * self.logits_bytes)

    def columns(self) -> dict[str, object]:
        """The case in a stored table."""
        shape = {"batch": self.batch, "steps": self.steps, "vocab": self.vocab, "width": self.width}
        return {"group": self.group, "key": self.key, "case": self.title, **shape, "documents": self.documents}


@dataclass(frozen=True, eq=False)
class Batch:
    """The data of a case: (logits,) [B, T, V], or (hidden [B, T, D], weight [V, D]), and what goes with them."""

    inputs: tuple[Tensor, ...]
    targets: Tensor  # [B, T]
    segments: Tensor | None  # [B, T]


def make_batch(case: Case, device: str, seed: int = 0) -> Batch:
    """Random, and as uneven as text: the r-th token has a probability near 1/(r ln V), in targets and predictions.

    So about 600 of 1,024 targets are distinct, and what was seen holds a good part of the predicted mass.
    """
    random = torch.Generator(device).manual_seed(seed)
    lead = (case.batch, case.steps)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, device=device, dtype=case.dtype)

    uniform = torch.rand(*lead, generator=random, device=device, dtype=torch.float64)
    targets = (uniform * math.log(case.vocab + 1)).exp().long().sub_(1).clamp_(0, case.vocab - 1)
    frequency = -torch.arange(1, case.vocab + 1, device=device).double().log().to(case.dtype)  # log 1/r
    inputs: tuple[Tensor, ...]
    if case.width:
        hidden, weight = normal(*lead, case.width).mul_(2), normal(case.vocab, case.width).div_(math.sqrt(case.width))
        hidden[..., 0], weight[:, 0] = 1, frequency
        inputs = (hidden, weight)
    else:
        inputs = (normal(*lead, case.vocab).mul_(2).add_(frequency),)
    segments = None
    if case.documents:
        place = torch.arange(case.steps, device=device) * case.documents // case.steps
        segments = place.expand(lead).contiguous()
    return Batch(inputs, targets, segments)


def full_cases(quick: bool = False) -> list[Case]:
    """The sizes of the requirements; `quick` leaves out what only the plots need."""
    dense = ("SG eager bias", "SG dense")
    linear = (*PLAIN, "CE F.linear_cross_entropy", "CE cut-cross-entropy", "CE cut-cross-entropy (filters)", *OURS)
    both = ("SG scalegrad", "UL scalegrad")
    gpt2 = Case("logits small", "logits", 8, 1024, 50_257, losses=(*PLAIN, *OURS, *dense))
    head = Case("linear small", "linear", 8, 1024, 50_257, 1024, losses=linear)
    packed = Case("packed 8", "packed", 1, 8192, 50_257, documents=8, losses=OURS)
    lengths = (1, 128) if quick else (1, 8, 32, 128)
    return [
        gpt2,
        replace(gpt2, key="logits large", vocab=128_256),
        head,
        replace(head, key="linear large", vocab=128_256, width=4096),
        replace(gpt2, key="ul logits", group="ul", losses=both),
        replace(head, key="ul linear", group="ul", losses=both),
        packed,
        replace(packed, key="packed 400", documents=400),
        Case("step", "step", 16, 1024, 50_257, 768),
        *(Case(f"long {k}k", "long", 128 // k, k * 1024, 50_257, losses=("CE Liger", *OURS)) for k in lengths),
        *(
            replace(gpt2, key=f"sweep {vocab}", group="sweep", vocab=vocab, losses=(*PLAIN, *OURS))
            for vocab in (() if quick else (32_000, 64_000, 262_144))  # as Llama 2, Yi and Gemma have it
        ),
    ]


def tiny_cases() -> list[Case]:
    """The same list at sizes that run anywhere in seconds: to try the benchmark, not the machine."""
    full = full_cases()
    return [
        replace(
            case,
            batch=max(1, case.batch // 8),
            steps=case.steps // 64,
            vocab=case.vocab // 256,
            width=case.width // 16,
            documents=case.documents // 8,
        )
        for case in full
    ]
