"""Summaries of many articles by any strategy: batched, the longest first, the same whatever the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scalegrad.data.pairs import Pair
from scalegrad.decoding.generation import generate
from scalegrad.decoding.strategies import Beam, Strategy, parse
from scalegrad.models.memory import batch_estimate, in_batches
from scalegrad.tasks.summarization.config import BEAM
from scalegrad.tasks.summarization.formats import Collate, Example, Format


def summarize(
    model: Any,
    form: Format,
    pairs: Sequence[Pair],
    strategy: Strategy | str = BEAM,
    *,
    new_tokens: int = 140,
    min_new_tokens: int = 0,
    source_seen: bool = False,
    seed: int = 0,
    batch: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """A summary for each pair, in their order; an article without text gets an empty one.

    `strategy`: an object or its text, such as "beam=5,gnmt=1.0,block_words=3". A causal LM's prompt counts as said
    only where `source_seen` asks for it, as in training. `batch=None` estimates how many fit into memory; running out
    halves it. `progress(done, total)` is called after every batch.
    """
    strategy = parse(strategy) if isinstance(strategy, str) else strategy
    if strategy.seen is None:
        strategy = replace(strategy, seen="all" if source_seen else "generated")
    sources = [_source(form, pair) if pair.source else None for pair in pairs]
    waiting = sorted(
        (place for place, source in enumerate(sources) if source), key=lambda place: -_length(sources[place])
    )
    texts = [""] * len(pairs)
    if not waiting:
        return texts
    if batch is None:
        beams = strategy.size if isinstance(strategy, Beam) else 1
        batch = batch_estimate(model, _length(sources[waiting[0]]) + new_tokens, beams)
    empty = len(pairs) - len(waiting)

    def write(places: slice) -> None:
        chosen = waiting[places]
        rows = generate(
            model,
            _inputs(model, form, [source for place in chosen if (source := sources[place])]),
            strategy,
            new_tokens=new_tokens,
            min_new_tokens=min_new_tokens,
            seed=seed,
            keys=chosen,
            tokenizer=form.tokenizer,
        )
        for place, ids in zip(chosen, rows, strict=True):
            texts[place] = form.text(ids)

    told = None if progress is None else lambda done, _: progress(empty + done, len(pairs))
    in_batches(len(waiting), batch, write, told)
    return texts


def _source(form: Format, pair: Pair) -> Example:
    read = dict(form.source(pair))
    read.pop("sentence_positions", None)
    return read


def _inputs(model: Any, form: Format, sources: Sequence[Example]) -> dict[str, Any]:
    pad = form.tokenizer.pad_token_id
    batch = Collate(0 if pad is None else pad, left=not model.config.is_encoder_decoder)(sources)
    return {name: value.to(model.device) for name, value in batch.items()}


def _length(source: Example | None) -> int:
    return len(source["input_ids"]) if source else 0
