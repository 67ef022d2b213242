"""Beam search with GNMT length normalisation and word-level n-gram blocking, as a `custom_generate` callable.

Hugging Face's own search divides by length^β and blocks n-grams of token ids; the systems the paper builds on divide
by ((5 + length) / 6)^β and block trigrams of words. `generate` prepares inputs, cache, processors and stopping rules
as always; only its decoding loop is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scalegrad.decoding.processors import gnmt_norm
from scalegrad.extras import need

# Which of these hypotheses, each given as its new ids, must be dropped?
Blocked = Callable[[list[list[int]]], list[bool]]


@dataclass(frozen=True)
class BeamSearch:
    """`model.generate(..., num_beams=K, custom_generate=BeamSearch(beta=1.0))`.

    Keeps the K likeliest unfinished hypotheses of each row. One that ends while among the K best of its step competes
    for the result by log p / ((5 + length) / 6)^beta, its length counting every new token and the end symbol; so do
    those that reach the maximum length. A row stops when nothing unfinished can still overtake its result, which is
    exact as long as no processor raises a log-probability above 0. A hypothesis that nothing may continue ends there.

    Returns ids [rows, L], or Hugging Face's beam output with `sequences_scores` under `return_dict_in_generate`.
    """

    beta: float = 0.0
    blocked: Blocked | None = None

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        beams, wanted = generation_config.num_beams, generation_config.num_return_sequences
        start, longest = input_ids.shape[1], generation_config.max_length - input_ids.shape[1]
        special = _special_ids(generation_config)
        live = _first_beams(input_ids, beams)
        pool = _Hypotheses(live.ids, torch.full_like(live.scores, -math.inf))  # the K best that ended, normalised
        outputs = model._prefill(input_ids, generation_config, model_kwargs)
        while True:
            model_kwargs = model._update_model_kwargs_for_generation(
                outputs, model_kwargs, is_encoder_decoder=model.config.is_encoder_decoder
            )
            log_p = torch.log_softmax(outputs.logits[:, -1].to(input_ids.device, torch.float32), dim=-1)
            log_p = logits_processor(live.flat(), log_p).view(*live.scores.shape, -1)  # [B, K, V]
            grown, parents = self._grow(live, log_p, start, special)
            ends = stopping_criteria(grown.flat(), None).view_as(grown.scores)
            pool = self._collect(pool, live, grown, ends, start, special)

            # The K best of the rest go on, unless the row's result is safe from all of them.
            scores, places = grown.scores.masked_fill(ends, -math.inf).topk(beams, dim=1)
            reach = scores[:, 0] / gnmt_norm(longest, self.beta)  # a negative sum is divided by the most possible
            done = pool.scores[:, wanted - 1] >= reach.masked_fill(scores[:, 0] > 0, math.inf)
            if bool(done.all()):
                return _output(model, generation_config, pool, wanted)
            live = _Hypotheses(grown.take(places).ids, scores.masked_fill(done[:, None], -math.inf))
            _reorder_cache(model, model_kwargs, parents.gather(1, places), beams)
            inputs = model.prepare_inputs_for_generation(
                live.flat(), next_sequence_length=1 if model_kwargs["use_cache"] else None, **model_kwargs
            )
            outputs = model(**inputs, return_dict=True)

    def _grow(self, live: _Hypotheses, log_p: Tensor, start: int, special: _Special) -> tuple[_Hypotheses, Tensor]:
        """The best one-token extensions of `live`, best first, and the beam each came from, both [B, N].

        N leaves K that go on even where an end symbol heads every beam. Blocked ones score -inf and are made up for
        by looking further down the list of the rows that lack some.
        """
        beams, vocabulary = live.scores.shape[1], log_p.shape[-1]
        totals = (live.scores[..., None] + log_p).flatten(1)  # [B, K·V]
        judged, lacking = 0, torch.ones(len(totals), dtype=torch.bool, device=totals.device)
        count = min((1 + len(special.ends)) * beams, totals.shape[1])
        kept = totals.new_empty(len(totals), 0)
        while True:
            scores, places = totals.topk(count, dim=1)
            parents, tokens = places // vocabulary, places % vocabulary
            ids = torch.cat([live.take(parents).ids, tokens[..., None]], dim=-1)
            further = scores[:, judged:].masked_fill(~lacking[:, None], -math.inf)
            kept = torch.cat([kept, self._without_blocked(ids[:, judged:, start:], further)], dim=1)
            goes_on = (kept > -math.inf) & ~torch.isin(tokens, tokens.new_tensor(special.ends))
            lacking &= (goes_on.sum(dim=1) < beams) & (scores[:, -1] > -math.inf)
            if self.blocked is None or count == totals.shape[1] or not bool(lacking.any()):
                return _Hypotheses(ids, kept), parents
            judged, count = count, min(4 * count, totals.shape[1])

    def _collect(
        self, pool: _Hypotheses, live: _Hypotheses, grown: _Hypotheses, ends: Tensor, start: int, special: _Special
    ) -> _Hypotheses:
        """The pool with what ended at this step, and with the beams of a row that can neither go on nor has ended."""
        length = grown.ids.shape[-1] - start
        best = (grown.scores > -math.inf).cumsum(dim=1) <= live.scores.shape[1]
        pool = pool.merge(grown.only(ends & best).over(gnmt_norm(length, self.beta)), special.fill)
        stuck = ((grown.scores == -math.inf).all(dim=1) & (pool.scores == -math.inf).all(dim=1))[:, None]
        return pool.merge(live.only(stuck).over(gnmt_norm(length - 1, self.beta)), special.end)

    def _without_blocked(self, new_ids: Tensor, scores: Tensor) -> Tensor:
        if self.blocked is None:
            return scores
        rows, places = torch.nonzero(scores > -math.inf, as_tuple=True)
        if not len(rows):
            return scores
        bad = torch.tensor(self.blocked(new_ids[rows, places].tolist()), device=scores.device)
        scores = scores.clone()
        scores[rows[bad], places[bad]] = -math.inf
        return scores


@dataclass(frozen=True)
class _Hypotheses:
    """Ids [B, K, L] and scores [B, K]; a score of -inf marks a place that holds nothing."""

    ids: Tensor
    scores: Tensor

    def flat(self) -> Tensor:
        return self.ids.flatten(0, 1)

    def only(self, keep: Tensor) -> _Hypotheses:
        return _Hypotheses(self.ids, self.scores.masked_fill(~keep, -math.inf))

    def over(self, norm: float) -> _Hypotheses:
        return _Hypotheses(self.ids, self.scores / norm)

    def take(self, places: Tensor) -> _Hypotheses:
        """Those at `places` [B, N] of each row."""
        wide = places[..., None].expand(-1, -1, self.ids.shape[-1])
        return _Hypotheses(self.ids.gather(1, wide), self.scores.gather(1, places))

    def merge(self, other: _Hypotheses, fill: int) -> _Hypotheses:
        """The K best of the two, best first; the narrower ids are filled up on the right."""
        width = max(self.ids.shape[-1], other.ids.shape[-1])
        padded = [torch.nn.functional.pad(one.ids, (0, width - one.ids.shape[-1]), value=fill) for one in (self, other)]
        both = _Hypotheses(torch.cat(padded, dim=1), torch.cat([self.scores, other.scores], dim=1))
        return both.take(both.scores.topk(self.scores.shape[1], dim=1).indices)


def _first_beams(input_ids: Tensor, beams: int) -> _Hypotheses:
    """K copies of each prompt, of which one counts: the others would only repeat its extensions."""
    ids = input_ids.view(-1, beams, input_ids.shape[1])
    scores = torch.full(ids.shape[:2], -math.inf, device=ids.device)
    scores[:, 0] = 0.0
    return _Hypotheses(ids, scores)


@dataclass(frozen=True)
class _Special:
    end: int  # ends a text
    fill: int  # fills up after it
    ends: list[int]  # all that end one


def _special_ids(config: Any) -> _Special:
    ends = [] if config._eos_token_tensor is None else config._eos_token_tensor.tolist()
    first = ends[0] if ends else 0
    fill = first if config._pad_token_tensor is None else int(config._pad_token_tensor)
    return _Special(end=first if ends else fill, fill=fill, ends=ends)


def _reorder_cache(model: Any, model_kwargs: dict[str, Any], parents: Tensor, beams: int) -> None:
    """Let place k of each row continue from the keys and values of the beam its hypothesis came from."""
    rows = torch.arange(parents.shape[0], device=parents.device)[:, None] * beams
    source = (parents + rows).flatten()
    for name in ("past_key_values", "cache_params"):
        if (cache := model_kwargs.get(name)) is None:
            continue
        if hasattr(model, "_reorder_cache"):  # a few models bring their own
            model_kwargs[name] = model._reorder_cache(cache, source)
        elif hasattr(cache, "reorder_cache"):
            cache.reorder_cache(source)
        else:
            raise ValueError(f"beam search needs a cache that can be reordered, and {type(model).__name__} has none")


def _output(model: Any, config: Any, pool: _Hypotheses, wanted: int) -> Any:
    sequences = pool.ids[:, :wanted].flatten(0, 1)
    if not config.return_dict_in_generate:
        return sequences
    utils = need("transformers.generation.utils", extra="hf")
    kind = "EncoderDecoder" if model.config.is_encoder_decoder else "DecoderOnly"
    return getattr(utils, f"GenerateBeam{kind}Output")(
        sequences=sequences, sequences_scores=pool.scores[:, :wanted].flatten()
    )
