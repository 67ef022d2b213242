"""The captioner's time loop: plain, and with a backward pass of its own.

`steps` is the mathematics, for any device and for drawing words on the way. `fast_steps` gives the same numbers for
training: autograd would record some forty operations a step and add up every weight's gradient step by step; here a
step back is fifteen, and each weight's gradient is one product over all steps at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class Weights(NamedTuple):
    """The weights of a step: attention LSTM [4H, 2H], query [A, H], score [A], language LSTM [4H, 3H], bias [4H]."""

    state: Tensor
    query: Tensor
    score: Tensor
    language: Tensor
    bias: Tensor


class Regions(NamedTuple):
    """What a step asks: values [B, R, H], keys [B, R, A], and where a region is missing, [B, R] (None: nowhere)."""

    values: Tensor
    keys: Tensor
    absent: Tensor | None


class LstmStates(NamedTuple):
    """Hidden state and cell of the attention LSTM and of the language LSTM, [B, H] each."""

    asked: Tensor
    asked_cell: Tensor
    said: Tensor
    said_cell: Tensor


ReadsOwnWord = Callable[[Tensor, Tensor], Tensor]  # gates from words [B, 4H] and the last said [B, H] -> gates [B, 4H]


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


def attention(asked: Tensor, regions: Regions, weights: Weights) -> tuple[Tensor, Tensor]:
    """Additive attention: the attention LSTM's state [B, H] -> shares of the regions [B, R], their mean [B, H]."""
    energy = torch.tanh(regions.keys + F.linear(asked, weights.query)[:, None])  # [B, R, A]
    scores = energy @ weights.score
    if regions.absent is not None:
        scores = scores.masked_fill(regions.absent, torch.finfo(scores.dtype).min)
    share = torch.softmax(scores, dim=1)
    return share, torch.bmm(share[:, None], regions.values).squeeze(1)


def steps(
    words: Tensor, regions: Regions, start: LstmStates, weights: Weights, own: ReadsOwnWord | None = None
) -> tuple[Tensor, LstmStates]:
    """Gates from words and image [T, B, 4H] -> the language LSTM's states [T, B, H], and where both LSTMs end.

    `own` may change a step's gates from the state said last: that is how scheduled sampling reads the model's own word.
    """
    asked, asked_cell, said, said_cell = start
    hidden = []
    for step, gates in enumerate(words.unbind(0)):
        if own is not None and step:
            gates = own(gates, said)
        gates = gates + F.linear(torch.cat([said, asked], dim=1), weights.state)
        asked, asked_cell = lstm_cell(gates, asked_cell)
        _, seen = attention(asked, regions, weights)
        gates = F.linear(torch.cat([seen, asked, said], dim=1), weights.language, weights.bias)
        said, said_cell = lstm_cell(gates, said_cell)
        hidden.append(said)
    return torch.stack(hidden), LstmStates(asked, asked_cell, said, said_cell)


def fast_steps(words: Tensor, regions: Regions, weights: Weights) -> Tensor:
    """`steps` from the zero state, without scheduled sampling, for training: the same states [T, B, H]."""
    hidden: Tensor = _Recurrence.apply(words, *regions, *weights)  # type: ignore[no-untyped-call]
    return hidden


class _Recurrence(torch.autograd.Function):
    """Keeps the activations of every step, and goes back through them."""

    @staticmethod
    def forward(
        ctx: Any, words: Tensor, values: Tensor, keys: Tensor, absent: Tensor | None, *tensors: Tensor
    ) -> Tensor:
        weights, regions = Weights(*tensors), Regions(values, keys, absent)
        count, batch, width = words.shape[0], words.shape[1], words.shape[2] // 4
        into_asked = words.new_zeros(count + 1, batch, 2 * width)  # [said, asked] before each step
        into_said = words.new_zeros(count + 1, batch, 3 * width)  # [seen, asked, said] of each step
        asked_cells, said_cells = (words.new_zeros(count + 1, batch, width) for _ in range(2))
        asked_gates, said_gates = torch.empty_like(words), torch.empty_like(words)
        shares = words.new_empty(count, batch, values.shape[1])
        for step in range(count):
            gates = torch.addmm(words[step], into_asked[step], weights.state.t())
            asked = _open(gates, asked_cells[step], asked_gates[step], asked_cells[step + 1])
            shares[step], seen = attention(asked, regions, weights)
            now = into_said[step]
            now[:, :width], now[:, width : 2 * width], now[:, 2 * width :] = seen, asked, into_asked[step, :, :width]
            gates = torch.addmm(weights.bias, now, weights.language.t())
            after = into_asked[step + 1]
            after[:, :width] = _open(gates, said_cells[step], said_gates[step], said_cells[step + 1])
            after[:, width:] = asked
        hidden = into_asked[1:, :, :width].contiguous()
        ctx.save_for_backward(
            values, keys, *tensors, into_asked, into_said, asked_cells, said_cells, asked_gates, said_gates, shares
        )
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor | None, ...]:
        values, keys, *rest = ctx.saved_tensors
        weights = Weights(*rest[:5])
        into_asked, into_said, asked_cells, said_cells, asked_gates, said_gates, shares = rest[5:]
        count, batch, width = wanted.shape
        to_words, to_language = torch.empty_like(asked_gates), torch.empty_like(said_gates)
        to_seen = torch.empty_like(wanted)
        to_queries = wanted.new_empty(count, batch, keys.shape[2])
        to_keys, to_score = torch.zeros_like(keys), torch.zeros_like(weights.score)
        said, asked = torch.zeros_like(wanted[0]), torch.zeros_like(wanted[0])
        said_cell, asked_cell = torch.zeros_like(said), torch.zeros_like(said)
        queries = F.linear(into_said[:count, :, width : 2 * width], weights.query)
        for step in reversed(range(count)):
            said = said + wanted[step]
            said_cell = _shut(said, said_cell, said_gates[step], said_cells[step : step + 2], to_language[step])
            into = torch.mm(to_language[step], weights.language)
            seen, asked, said = into[:, :width], asked + into[:, width : 2 * width], into[:, 2 * width :]
            to_seen[step] = seen
            share = shares[step]
            to_share = torch.bmm(values, seen[:, :, None]).squeeze(2)
            scores = share * (to_share - (share * to_share).sum(dim=1, keepdim=True))  # [B, R]
            energy = torch.tanh(keys + queries[step][:, None])  # [B, R, A], made again: it is the largest by far
            to_score += torch.mv(energy.flatten(0, 1).t(), scores.flatten())
            shaken = scores[:, :, None] * (weights.score * (1 - energy * energy))
            to_keys += shaken
            torch.sum(shaken, dim=1, out=to_queries[step])
            asked = torch.addmm(asked, to_queries[step], weights.query)
            asked_cell = _shut(asked, asked_cell, asked_gates[step], asked_cells[step : step + 2], to_words[step])
            into = torch.mm(to_words[step], weights.state)
            said, asked = said + into[:, :width], into[:, width:]
        to_values = torch.bmm(shares.permute(1, 2, 0), to_seen.transpose(0, 1))
        language = to_language.flatten(0, 1)
        return (
            to_words,
            to_values,
            to_keys,
            None,
            to_words.flatten(0, 1).t() @ into_asked[:count].flatten(0, 1),
            to_queries.flatten(0, 1).t() @ into_said[:count, :, width : 2 * width].flatten(0, 1),
            to_score,
            language.t() @ into_said[:count].flatten(0, 1),
            language.sum(dim=0),
        )


def _open(gates: Tensor, before: Tensor, kept: Tensor, after: Tensor) -> Tensor:
    """An LSTM's step forward: opened gates to `kept`, the new cell to `after`; returns the hidden state."""
    width = before.shape[1]
    torch.sigmoid(gates[:, : 3 * width], out=kept[:, : 3 * width])
    torch.tanh(gates[:, 3 * width :], out=kept[:, 3 * width :])
    into, forget, out, candidate = kept.chunk(4, dim=1)
    torch.mul(forget, before, out=after)
    after.addcmul_(into, candidate)
    return out * torch.tanh(after)


def _shut(hidden: Tensor, cell: Tensor, kept: Tensor, cells: Tensor, gates: Tensor) -> Tensor:
    """A step back: gradients of hidden state and cell -> that of the gates (written to `gates`), of the cell before.

    `kept` are the opened gates, `cells` [2, B, H] the cell before the step and after it.
    """
    before, after = cells
    into, forget, out, candidate = kept.chunk(4, dim=1)
    width = before.shape[1]
    bent = torch.tanh(after)
    cell = cell + hidden * out * (1 - bent * bent)
    local = kept[:, : 3 * width] * (1 - kept[:, : 3 * width])  # σ' of the three
    torch.mul(torch.cat([cell * candidate, cell * before, hidden * bent], dim=1), local, out=gates[:, : 3 * width])
    torch.mul(cell * into, 1 - candidate * candidate, out=gates[:, 3 * width :])
    return cell * forget
