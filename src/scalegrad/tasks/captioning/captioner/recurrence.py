"""The captioner's time loop: an attention LSTM, attention over the regions, a language LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Weights(NamedTuple):
    """The weights of a step: attention LSTM [4H, 2H], query [A, H], score [A], language LSTM [4H, 3H], bias [4H]."""

    state: Tensor
    query: Tensor
    score: Tensor
    language: Tensor
    bias: Tensor


class Regions(NamedTuple):
    """What a step attends to: values [B, R, H], keys [B, R, A], and where a region is missing, [B, R] (or None)."""

    values: Tensor
    keys: Tensor
    absent: Tensor | None


class LstmStates(NamedTuple):
    """Hidden state and cell of the attention LSTM and of the language LSTM, [B, H] each."""

    attention: Tensor
    attention_cell: Tensor
    language: Tensor
    language_cell: Tensor


ReadsOwnWord = Callable[[Tensor, Tensor], Tensor]  # word gates [B, 4H], the language LSTM's state [B, H] -> gates


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: gates [B, 4H] (input, forget, output, candidate) and cell [B, H] -> hidden and cell.

    >>> hidden, cell = lstm_cell(torch.zeros(1, 4), torch.tensor([[2.0]]))  # all gates half open, candidate 0
    >>> cell.item(), round(hidden.item(), 6)  # 1/2 · 2; 1/2 · tanh 1
    (1.0, 0.380797)
    """
    width = cell.shape[-1]
    into, forget, out = torch.sigmoid(gates[:, : 3 * width]).chunk(3, dim=1)
    cell = torch.addcmul(forget * cell, into, torch.tanh(gates[:, 3 * width :]))
    return out * torch.tanh(cell), cell


def attend(state: Tensor, regions: Regions, weights: Weights) -> Tensor:
    """Additive attention: the attention LSTM's state [B, H] -> the weighted mean of the regions' values [B, H]."""
    energy = torch.tanh(regions.keys + F.linear(state, weights.query)[:, None])  # [B, R, A]
    scores = energy @ weights.score
    if regions.absent is not None:
        scores = scores.masked_fill(regions.absent, torch.finfo(scores.dtype).min)
    share = torch.softmax(scores, dim=1)
    return torch.bmm(share[:, None], regions.values).squeeze(1)


def steps(
    words: Tensor, regions: Regions, start: LstmStates, weights: Weights, own: ReadsOwnWord | None = None
) -> tuple[Tensor, LstmStates]:
    """Gates from words and image [T, B, 4H] -> the language LSTM's states [T, B, H], and where both LSTMs end.

    `own` may change a step's gates from the language LSTM's last state: scheduled sampling reads the model's own word.
    """
    attention, attention_cell, language, language_cell = start
    hidden = []
    for step, gates in enumerate(words.unbind(0)):
        if own is not None and step:
            gates = own(gates, language)
        gates = gates + F.linear(torch.cat([language, attention], dim=1), weights.state)
        attention, attention_cell = lstm_cell(gates, attention_cell)
        view = attend(attention, regions, weights)
        gates = F.linear(torch.cat([view, attention, language], dim=1), weights.language, weights.bias)
        language, language_cell = lstm_cell(gates, language_cell)
        hidden.append(language)
    return torch.stack(hidden), LstmStates(attention, attention_cell, language, language_cell)
