"""Continuations for many prefixes, to a JSONL file: batched to fit memory, resumable, the same however often killed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from scalegrad._version import __version__
from scalegrad.counts import counted
from scalegrad.data.records import Problems
from scalegrad.decoding.generation import generate
from scalegrad.decoding.journal import Journal
from scalegrad.decoding.strategies import Beam, Strategy, check_new_tokens, parse
from scalegrad.extras import need
from scalegrad.models.memory import batch_estimate, out_of_memory
from scalegrad.models.pretrained import weights_checksum
from scalegrad.runs.progress import Done


@dataclass(frozen=True)
class Prefix:
    """A text to continue, and the ids that stand for it."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Completed:
    """What `complete` did: `texts` lines in `out`, `resumed` of which an earlier run had made."""

    out: Path
    texts: int
    resumed: int
    new_tokens: int
    batch: int
    seconds: float


def complete(
    model: Any,
    tokenizer: Any,
    prefixes: Sequence[Prefix],
    out: str | Path,
    strategy: Strategy | str = "greedy",
    *,
    new_tokens: int = 100,
    min_new_tokens: int = 0,
    seed: int = 0,
    batch: int | None = None,
    name: str = "",
    overwrite: bool = False,
    progress: Done | None = None,
) -> Completed:
    """Continue every prefix and write `out`, a JSON line each with id, prefix, continuation and its number of tokens.

    Killed at any moment, the same call goes on where it stopped and ends with the same file: a batch that was under
    way is run again whole, with the neighbours it had. `batch=None` estimates how many fit into memory; running out
    halves it from there on. `name` is what to record the model as; its weights are recorded too, by a checksum.
    `progress(done, total)` is called after every batch.
    """
    strategy = parse(strategy) if isinstance(strategy, str) else strategy
    if batch is not None and batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}")
    check_new_tokens(min_new_tokens, new_tokens)
    _check_lengths(model, prefixes, new_tokens)
    settings = {
        "model": name,
        "weights": weights_checksum(model),
        "prefixes": _prefix_checksum(prefixes),
        "strategy": str(strategy),
        "new_tokens": new_tokens,
        "min_new_tokens": min_new_tokens,
        "seed": seed,
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": model.device.type,
        "versions": versions(),
    }
    # Longest first: like goes with like, and what does not fit into memory shows at once.
    order = sorted(range(len(prefixes)), key=lambda i: (-len(prefixes[i].ids), i))
    decode = partial(
        generate,
        model,
        strategy=strategy,
        new_tokens=new_tokens,
        min_new_tokens=min_new_tokens,
        seed=seed,
        tokenizer=tokenizer,
    )
    began = time.perf_counter()
    journal = Journal(Path(out), settings, order, overwrite)
    resumed, new_tokens = journal.done, 0
    try:
        if not journal.finished:
            _plan(journal, batch, lambda: _estimate(model, prefixes, new_tokens, strategy))
        while journal.done < len(order):
            fresh = _next(journal, decode, prefixes)
            journal.append(_record(i, prefixes[i], new, model, tokenizer) for i, new in fresh)
            new_tokens += sum(len(new) for _, new in fresh)
            if progress:
                progress(journal.done, len(order))
        if not journal.finished:
            journal.finish()
    finally:
        journal.close()
    size = journal.plan[-1][1]
    return Completed(journal.out, len(order), resumed, new_tokens, size, time.perf_counter() - began)


def prefixes_of(
    texts: Iterable[str], tokenizer: Any, start: Sequence[int] | None = None, problems: Problems | None = None
) -> list[Prefix]:
    """Texts with their ids; an empty text becomes the tokenizer's start symbol.

    `start` are the ids before each text (`start_ids`); None takes the special tokens, before it and after it, that the
    tokenizer adds: what an encoder reads. A text without ids, where there is no start symbol, goes to `problems`.
    """
    problems = Problems() if problems is None else problems
    prefixes = []
    for number, text in enumerate(texts):
        ids = tokenizer(text)["input_ids"] if start is None else _after(start, text, tokenizer)
        if not ids:
            if tokenizer.bos_token_id is None:
                problems.add("it is empty, and the tokenizer has no symbol to begin a text with", f"prefix {number}")
                continue
            ids = [tokenizer.bos_token_id]
        prefixes.append(Prefix(text, tuple(ids)))
    return prefixes


def _after(start: Sequence[int], text: str, tokenizer: Any) -> list[int]:
    return [*start, *tokenizer(text, add_special_tokens=False)["input_ids"]]


def prefixes_from_ids(rows: Iterable[Sequence[int]], tokenizer: Any, start: Sequence[int] = ()) -> list[Prefix]:
    """Ids, after those of `start`, with the text they stand for."""
    return [Prefix(_decoded(tokenizer, ids), (*start, *(int(i) for i in ids))) for ids in rows]


def versions() -> dict[str, str]:
    """What a continuation's last digit may depend on."""
    return {
        "scalegrad": __version__,
        "torch": torch.__version__,
        "transformers": need("transformers", extra="hf").__version__,
    }


def _prefix_checksum(prefixes: Sequence[Prefix]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for prefix in prefixes:
        digest.update(f"{prefix.text}\0{prefix.ids}\n".encode(errors="replace"))
    return f"{len(prefixes)} of checksum {digest.hexdigest()}"


def _check_lengths(model: Any, prefixes: Sequence[Prefix], new: int) -> None:
    """A model with learned positions fails in the middle of a run if a text outgrows them; say it before."""
    if not prefixes:
        raise ValueError("prefixes: there are none")
    limit = getattr(model.config, "max_position_embeddings", None)
    number, longest = max(enumerate(len(prefix.ids) for prefix in prefixes), key=lambda pair: pair[1])
    needed = max(longest, new + 1) if model.config.is_encoder_decoder else longest + new
    if limit is not None and needed > limit:
        raise ValueError(
            f"prefix {number} has {counted(longest, 'token')}, which with {counted(new, 'new one')} is more than the "
            f"model's {limit} positions; shorten the prefix or ask for fewer new tokens"
        )


def _estimate(model: Any, prefixes: Sequence[Prefix], new: int, strategy: Strategy) -> int:
    longest = max(len(prefix.ids) for prefix in prefixes)
    return min(batch_estimate(model, longest + new, strategy.size if isinstance(strategy, Beam) else 1), len(prefixes))


def _plan(journal: Journal, batch: int | None, estimate: Callable[[], int]) -> None:
    """Batches as an earlier run planned them, unless this one is told another size."""
    if not journal.plan:
        journal.replan(0, batch or estimate())
    elif batch is not None and batch != journal.plan[-1][1]:
        journal.replan(journal.done, batch)


def _next(
    journal: Journal, decode: Callable[..., list[list[int]]], prefixes: Sequence[Prefix]
) -> list[tuple[int, list[int]]]:
    """(number, new ids) of the next batch's prefixes that are not written yet; smaller batches if it does not fit."""
    while True:
        places = journal.next_batch()
        chosen = [journal.order[place] for place in places]
        try:
            rows = decode(inputs=[prefixes[i].ids for i in chosen], keys=chosen)
        except Exception as error:
            if not out_of_memory(error):
                raise
            if len(places) == 1:
                length = counted(len(prefixes[chosen[0]].ids), "token")
                raise ValueError(
                    f"batch: out of memory on prefix {chosen[0]} alone ({length}); "
                    "use fewer beams, fewer new tokens, a shorter prefix or a smaller dtype"
                ) from None
        else:
            return list(zip(chosen, rows, strict=True))[journal.done - places.start :]
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        journal.replan(places.start, 2 ** ((len(places) - 1).bit_length() - 1))  # the next power of two below


def _record(number: int, prefix: Prefix, new: list[int], model: Any, tokenizer: Any) -> dict[str, Any]:
    return {
        "id": number,
        "prefix": prefix.text,
        "continuation": _continuation(tokenizer, prefix.ids, new, joined=not model.config.is_encoder_decoder),
        "tokens": len(new),
    }


def _continuation(tokenizer: Any, before: Sequence[int], new: list[int], joined: bool) -> str:
    """The text of the new ids; if they continue the prefix, what they add to it (some decoders drop a first space)."""
    if joined:
        head, whole = _decoded(tokenizer, before), _decoded(tokenizer, [*before, *new])
        if whole.startswith(head):
            return whole[len(head) :]
    return _decoded(tokenizer, new)


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))
