"""Perplexity and its relatives, from per-token losses."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray


def perplexity(nll: ArrayLike | torch.Tensor, num_items: int | None = None) -> float:
    """exp of the mean negative log-likelihood per token (natural logarithm).

    `nll` are per-token values of any shape. Losses hold 0 at ignored targets: pass the number of targets kept as
    `num_items` then; by default every value counts.

    >>> round(perplexity([np.log(2), np.log(8)]), 12)  # a mean of 2 log 2
    4.0
    >>> round(perplexity([np.log(2), np.log(8), 0.0], num_items=2), 12)
    4.0
    """
    return _exp_of_mean("nll", nll, num_items)


def calibrated_perplexity(sg_losses: ArrayLike | torch.Tensor, num_items: int | None = None) -> float:
    """exp of the mean ScaleGrad loss per token: the perplexity of p̃, the distribution that ScaleGrad fits to the data.

    The loss is −log p̃(target) and p̃ sums to 1, so this is a true perplexity. p̃ may weigh seen tokens up: compare it
    with another model only where that one was fitted a boost on seen tokens, too. The plain perplexity of a ScaleGrad
    model is that of p, which is meant to undervalue what was already said.

    >>> round(calibrated_perplexity([np.log(2), np.log(8)]), 12)
    4.0
    """
    return _exp_of_mean("sg_losses", sg_losses, num_items)


def bits_per_byte(nll: ArrayLike | torch.Tensor, n_bytes: int) -> float:
    """Summed negative log-likelihood in bits over the bytes of the text: comparable between tokenizers.

    >>> round(bits_per_byte([np.log(2), np.log(8)], n_bytes=4), 12)  # 1 + 3 bits
    1.0
    """
    if n_bytes < 1:
        raise ValueError(f"n_bytes must be at least 1, not {n_bytes}")
    return float(_values("nll", nll).sum() / np.log(2) / n_bytes)


def _exp_of_mean(name: str, losses: ArrayLike | torch.Tensor, num_items: int | None) -> float:
    values = _values(name, losses)
    if num_items is not None and num_items < 1:
        raise ValueError(f"num_items must be at least 1, not {num_items}")
    return float(np.exp(values.sum() / (values.size if num_items is None else num_items)))


def _values(name: str, losses: ArrayLike | torch.Tensor) -> NDArray[np.float64]:
    """In float64: a sum of millions of losses keeps its digits."""
    if isinstance(losses, torch.Tensor):
        losses = losses.detach().cpu().double().numpy()
    values = np.asarray(losses, np.float64)
    if values.size == 0:
        raise ValueError(f"{name} must hold at least one value; it is empty")
    return values
