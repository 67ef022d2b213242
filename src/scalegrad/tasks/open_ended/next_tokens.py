"""The language-modelling columns of the paper's tables: perplexity, Rep/l and uniq of next-token predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scalegrad import functional as SF
from scalegrad.decoding.memory import out_of_memory
from scalegrad.metrics import bits_per_byte, calibrated_perplexity, next_token, perplexity

# Logits held at once: the set's are never together in memory.
_CPU_LOGITS = 1 << 26
_DEVICE_LOGITS = 1 << 29
_MOST_CHUNKS = 32

Progress = Callable[[int, int], None]


def score_chunks(
    model: Any,
    tokenizer: Any,
    chunks: NDArray[np.integer[Any]],
    gamma: float | None = None,
    *,
    batch: int | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """ppl, calibrated_ppl (with `gamma`), bits_per_byte, seen_mass, accuracy, Rep/l, wrong-Rep/l and uniq on `chunks`.

    Each row of `chunks` [M, T + 1] is read from its first token and predicts the other T. `seen_mass` is the mean
    probability the model gives to all tokens already read in the chunk together. Calibrated is the perplexity of the
    distribution ScaleGrad with `gamma` fits, what was read in the chunk being seen (the first token too).
    """
    nll, scaled, mass, predictions = _run(model, chunks, gamma, batch, progress)
    found = {"ppl": perplexity(nll)}
    if gamma is not None:
        found["calibrated_ppl"] = calibrated_perplexity(scaled)
    found["bits_per_byte"] = bits_per_byte(nll, _target_bytes(tokenizer, chunks))
    found["seen_mass"] = float(mass.mean(dtype=np.float64))
    figures = next_token(predictions, chunks[:, 1:])
    return found | {"accuracy": figures.pop("accuracy")} | figures


def _run(
    model: Any, chunks: NDArray[np.integer[Any]], gamma: float | None, batch: int | None, progress: Progress | None
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """NLL, ScaleGrad loss, seen mass and argmax of every target, [M, T] each."""
    rows, width = chunks.shape[0], chunks.shape[1] - 1
    nll, scaled, mass = (np.empty((rows, width), np.float32) for _ in range(3))
    predictions = np.empty((rows, width), np.int32)
    size = batch or _estimate(model, width)
    start = 0
    while start < rows:
        try:
            part = _forward(model, torch.as_tensor(chunks[start : start + size], dtype=torch.long), gamma)
        except Exception as error:
            if not out_of_memory(error) or size == 1:
                raise
            size //= 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            continue
        stop = min(start + size, rows)
        for whole, piece in zip((nll, scaled, mass, predictions), part, strict=True):
            whole[start:stop] = piece.cpu().numpy()
        start = stop
        if progress:
            progress(start, rows)
    return nll, scaled, mass, predictions


@torch.inference_mode()
def _forward(model: Any, chunk: torch.Tensor, gamma: float | None) -> tuple[torch.Tensor, ...]:
    chunk = chunk.to(model.device)
    read, targets = chunk[:, :-1], chunk[:, 1:].contiguous()
    was_training = model.training
    model.eval()
    try:
        logits = model(input_ids=read).logits
    finally:
        model.train(was_training)
    # What was read counts as seen, so the chunk's first token does too: the paper's y¹.
    loss, parts = SF.scale_grad(
        logits, targets, gamma or 1.0, context=read.contiguous(), reduction="none", return_parts=True
    )
    return parts.nll.float(), loss.float(), parts.seen_mass.float(), logits.argmax(dim=-1)


def _estimate(model: Any, width: int) -> int:
    held = _CPU_LOGITS if model.device.type == "cpu" else _DEVICE_LOGITS
    return max(1, min(_MOST_CHUNKS, held // (width * int(model.config.get_text_config().vocab_size))))


def _target_bytes(tokenizer: Any, chunks: NDArray[np.integer[Any]]) -> int:
    """Bytes of the text the targets stand for: that of a chunk less that of its first token.

    A character cut by a chunk's edge counts as U+FFFD's three bytes: some bytes in a million.
    """

    def size(ids: NDArray[np.integer[Any]]) -> int:
        text = tokenizer.decode(ids.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return len(str(text).encode(errors="replace"))

    return sum(size(chunk) - size(chunk[:1]) for chunk in chunks)
