"""The language-modelling columns of the paper's tables: perplexity, Rep/l and uniq of next-token predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scalegrad import functional as SF
from scalegrad.metrics import bits_per_byte, calibrated_perplexity, next_token, perplexity
from scalegrad.models.memory import in_batches
from scalegrad.runs.progress import Done

# Logits held at once: the set's are never together in memory.
_CPU_LOGITS = 1 << 26
_DEVICE_LOGITS = 1 << 29
_MOST_CHUNKS = 32

Chunks = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class ChunkScores:
    """Figures of the model itself, and of the model under each penalty of the decoding (by its γ)."""

    figures: dict[str, float]
    penalised: dict[float, dict[str, float]]


def score_chunks(
    model: Any,
    tokenizer: Any,
    chunks: Chunks,
    gamma: float | None = None,
    *,
    start: Sequence[int] = (),
    penalties: Sequence[float] = (),
    batch: int | None = None,
    progress: Done | None = None,
) -> ChunkScores:
    """ppl, calibrated_ppl (with `gamma`), bits_per_byte, seen_mass, accuracy, Rep/l, wrong-Rep/l and uniq on `chunks`.

    Each row of `chunks` [M, T + 1] is read from its first token and predicts the other T. What was read of the chunk
    is seen, its first token too. The ids of `start` are read before each chunk; they are no targets and not seen, and
    the targets are the same with them and without. `seen_mass` is the mean probability of all seen tokens together.
    Calibrated is the perplexity of the distribution ScaleGrad with `gamma` fits. `penalties` are γ of the novelty
    processor: the same columns for the model as it decodes under it, seen probabilities times γ and renormalised.
    """
    scored = _run(model, chunks, gamma, start, penalties, batch, progress)
    nll, targets = scored["nll"], chunks[:, 1:]
    found = {"ppl": perplexity(nll)}
    if gamma is not None:
        found["calibrated_ppl"] = calibrated_perplexity(scored["scaled"])
    found["bits_per_byte"] = bits_per_byte(nll, _target_bytes(tokenizer, chunks))
    found["seen_mass"] = float(scored["mass"].mean(dtype=np.float64))
    penalised = {}
    for penalty in penalties:
        losses, guesses = scored[f"nll {penalty}"], scored[f"argmax {penalty}"]
        penalised[penalty] = {"ppl": perplexity(losses)} | next_token(guesses.astype(np.int64), targets)
    return ChunkScores(found | next_token(scored["argmax"].astype(np.int64), targets), penalised)


def _run(
    model: Any,
    chunks: Chunks,
    gamma: float | None,
    start: Sequence[int],
    penalties: Sequence[float],
    batch: int | None,
    progress: Done | None,
) -> dict[str, NDArray[Any]]:
    """For every target: NLL, ScaleGrad loss, seen mass and argmax; NLL and argmax under each penalty. [M, T] each."""

    def predicted(places: slice) -> dict[str, NDArray[Any]]:
        chunk = torch.as_tensor(chunks[places], dtype=torch.long).to(model.device)
        return {name: values.cpu().numpy() for name, values in _forward(model, chunk, gamma, start, penalties).items()}

    parts = in_batches(len(chunks), batch or _estimate(model, chunks.shape[1] - 1), predicted, progress)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@torch.inference_mode()
def _forward(
    model: Any, chunk: Tensor, gamma: float | None, start: Sequence[int], penalties: Sequence[float]
) -> dict[str, Tensor]:
    read, targets = chunk[:, :-1].contiguous(), chunk[:, 1:].contiguous()
    before = read.new_tensor(start).expand(len(read), -1)
    was_training = model.training
    model.eval()
    try:
        logits = model(input_ids=torch.cat([before, read], dim=1)).logits[:, len(start) :]
    finally:
        model.train(was_training)
    loss, parts = SF.scale_grad(logits, targets, gamma or 1.0, context=read, reduction="none", return_parts=True)
    found = {"nll": parts.nll.float(), "scaled": loss.float(), "mass": parts.seen_mass.float()}
    found["argmax"] = logits.argmax(dim=-1).int()
    seen = _seen(read, logits.shape[-1]) if penalties else []
    for penalty in penalties:
        shift = math.log(penalty)
        # −log p′_k for p′ = γ^[seen]·p renormalised: the whole of p′ before that is 1 − (1 − γ)π.
        found[f"nll {penalty}"] = (
            parts.nll + torch.log1p((penalty - 1) * parts.seen_mass) - shift * parts.target_seen
        ).float()
        guesses = [(row + shift * mask).argmax(dim=-1) for row, mask in zip(logits, seen, strict=True)]
        found[f"argmax {penalty}"] = torch.stack(guesses).int()
    return found


def _seen(read: Tensor, vocabulary: int) -> list[Tensor]:
    """Which tokens were read up to each step, for each row: bool [T, V]."""
    steps = torch.arange(read.shape[1], device=read.device)
    masks = []
    for row in read:
        first = torch.full((vocabulary,), len(steps), device=read.device)
        first.scatter_reduce_(0, row, steps, "amin")
        masks.append(first <= steps[:, None])
    return masks


def _estimate(model: Any, width: int) -> int:
    held = _CPU_LOGITS if model.device.type == "cpu" else _DEVICE_LOGITS
    return max(1, min(_MOST_CHUNKS, held // (width * int(model.config.get_text_config().vocab_size))))


def _target_bytes(tokenizer: Any, chunks: Chunks) -> int:
    """Bytes of the text the targets stand for: that of a chunk less that of its first token.

    A character cut by a chunk's edge counts as U+FFFD's three bytes: some bytes in a million.
    """

    def size(ids: Chunks) -> int:
        text = tokenizer.decode(ids.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return len(str(text).encode(errors="replace"))

    return sum(size(chunk) - size(chunk[:1]) for chunk in chunks)
