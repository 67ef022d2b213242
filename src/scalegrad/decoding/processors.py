"""Changes to the next-token scores before one is chosen: the novelty penalty, n-gram blocking hard and soft.

Each is called as Hugging Face `generate` calls a logits processor, with the running ids [R, L] and the scores [R, V].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from scalegrad.decoding.history import History

SOFT_PENALTY = 2.0 * math.log(2.0)  # per earlier occurrence: the probability falls to a quarter


class Processor(Protocol):
    """What Hugging Face calls a LogitsProcessor."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor: ...


def gnmt_norm(length: int, beta: float) -> float:
    """((5 + length) / 6)^β, what the log-probability of a hypothesis is divided by.

    >>> gnmt_norm(1, 2.0), gnmt_norm(7, 1.0), gnmt_norm(100, 0.0)
    (1.0, 2.0, 1.0)
    """
    return float(((5.0 + length) / 6.0) ** beta)


class NoveltyProcessor:
    """ScaleGrad's twin at decoding time: p = softmax(log q + log γ · 1[seen]).

    q is the model's own distribution, γ in (0, 1] and log γ is negative: what was said becomes γ times as likely
    against what was not. The result is normalised (log-probabilities), so that beam scores stay probabilities too.
    γ = 1 changes nothing. `exempt` ids are never counted as seen.

    >>> history = History(prompt=torch.tensor([[0]]), start=1)
    >>> even = torch.zeros(1, 3)  # three equally likely tokens, of which 0 was said: γ = 1/2 gives 1/5, 2/5, 2/5
    >>> NoveltyProcessor(0.5, history)(torch.tensor([[0]]), even).exp()
    tensor([[0.2000, 0.4000, 0.4000]])
    """

    def __init__(self, gamma: float, history: History, exempt: Sequence[int] = ()) -> None:
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma must lie in (0, 1], not {gamma!r}")
        self.gamma = gamma
        self.history = history
        self.exempt = list(exempt)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if not all(0 <= token < scores.shape[-1] for token in self.exempt):
            raise ValueError(f"exempt ids must lie in [0, {scores.shape[-1]}), not {self.exempt}")
        seen = _counts(self.history.said(input_ids), scores) > 0
        seen[:, self.exempt] = False
        return torch.log_softmax(torch.where(seen, scores + math.log(self.gamma), scores), dim=-1)


class RepetitionPenaltyProcessor:
    """The penalty that CTRL brought and Hugging Face calls `repetition_penalty`: seen scores / θ, negative ones · θ.

    How strong it is depends on where the model's scores have their zero, which its probabilities do not show: hence
    the novelty penalty, which is the same for every model. Padding does not count as seen.

    >>> history = History(prompt=torch.tensor([[0, 1]]), start=2)
    >>> RepetitionPenaltyProcessor(2.0, history)(history.prompt, torch.tensor([[3.0, -3.0, 3.0]]))
    tensor([[ 1.5000, -6.0000,  3.0000]])
    """

    def __init__(self, penalty: float, history: History) -> None:
        self.penalty = penalty
        self.history = history

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        seen = _counts(self.history.said(input_ids), scores) > 0
        lowered = torch.where(scores > 0, scores / self.penalty, scores * self.penalty)
        return torch.where(seen, lowered, scores)


class NgramProcessor:
    """Lower every token that would complete an n-gram of ids already said.

    `penalty` is taken off the log-probability once for each earlier occurrence; infinity forbids the token. The
    default, 2 ln 2, divides the probability by four each time (soft blocking). Nothing is renormalised.

    >>> history = History(prompt=torch.tensor([[1, 2, 1, 2, 1]]), start=5)
    >>> NgramProcessor(2, history)(history.prompt, torch.zeros(1, 3)).exp()  # "1 2" occurred twice: 1/16
    tensor([[1.0000, 1.0000, 0.0625]])
    >>> NgramProcessor(2, history, penalty=math.inf)(history.prompt, torch.zeros(1, 3))
    tensor([[0., 0., -inf]])
    """

    def __init__(self, n: int, history: History, penalty: float = SOFT_PENALTY) -> None:
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n!r}")
        if not penalty > 0:
            raise ValueError(f"penalty must be positive, not {penalty!r}")
        self.n = n
        self.history = history
        self.penalty = penalty

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        said, running = self.history.said(input_ids), self.history.running(input_ids)
        if said.shape[1] < self.n or running.shape[1] < self.n - 1:
            return scores
        windows = said.unfold(1, self.n, 1)  # [R, W, n]
        ending = running[:, running.shape[1] - (self.n - 1) :]  # [R, n - 1], what a new token would complete
        matches = (windows[..., :-1] == ending[:, None, :]).all(dim=-1) & (windows >= 0).all(dim=-1)  # [R, W]
        counts = _counts(torch.where(matches, windows[..., -1], -1), scores)
        if math.isinf(self.penalty):
            return scores.masked_fill(counts > 0, -math.inf)
        return scores - self.penalty * counts


class EndProcessor:
    """Length normalisation for greedy search: end only where the normalised score of ending beats that of going on.

    With S the log-probability of the text so far and L the length it would have, the end symbol wins over the best
    other token if (S + log p_end) / ((5 + L) / 6)^β ≥ (S + log p_best) / ((6 + L) / 6)^β: the finished text against the
    one that is a token longer. That lowers log p_end by about β times the mean surprise of a token so far. β = 0 is
    plain greedy search; the larger β, the longer the texts. It remembers S, so it serves one call of `generate`.

    >>> history = History(prompt=torch.empty(1, 0), start=1, ends=(0,))
    >>> even = torch.zeros(1, 2)  # end or go on, ½ each, L = 1: log p_end falls by (1 − 6/7) · ln 2
    >>> EndProcessor(1.0, history)(torch.tensor([[9]]), even)
    tensor([[-0.7922, -0.6931]])
    """

    def __init__(self, beta: float, history: History) -> None:
        self.beta = beta
        self.history = history
        self.total: Tensor | float = 0.0  # S, [R]
        self.last: Tensor | None = None  # log-probabilities of the step before, [R, V]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        log_p = torch.log_softmax(scores, dim=-1)
        if self.last is not None:
            self.total = self.total + self.last.gather(1, input_ids[:, -1:]).squeeze(1)
        self.last = log_p
        ends, length = list(self.history.ends), input_ids.shape[1] - self.history.start + 1
        if not ends:
            return log_p
        goes_on = log_p.clone()
        goes_on[:, ends] = -math.inf
        shrink = gnmt_norm(length, self.beta) / gnmt_norm(length + 1, self.beta)
        changed = log_p.clone()
        changed[:, ends] += ((1.0 - shrink) * (self.total + goes_on.amax(dim=1)))[:, None]
        return changed


def _counts(ids: Tensor, scores: Tensor) -> Tensor:
    """[R, H] ids, negative ones ignored -> [R, V] how often each occurs."""
    vocabulary = scores.shape[-1]
    spare = torch.where((ids < 0) | (ids >= vocabulary), vocabulary, ids)  # a column past the end takes what is ignored
    counts = scores.new_zeros((scores.shape[0], vocabulary + 1))
    counts.scatter_add_(1, spare, torch.ones_like(spare, dtype=scores.dtype))
    return counts[:, :vocabulary]
