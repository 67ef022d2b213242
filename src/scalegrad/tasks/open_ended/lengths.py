"""Repetition of continuations by their length: written once at the longest, measured on each beginning of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalegrad.data import encode_corpus
from scalegrad.decoding import generate
from scalegrad.decoding.memory import batch_estimate, in_batches
from scalegrad.runs import Run
from scalegrad.tasks.open_ended.corpora import Corpus
from scalegrad.tasks.open_ended.evaluation import cut_corpus, spread, text_figures

_CHUNK = 301  # tokens the paper cuts a corpus into, of which it keeps 300

Ids = NDArray[np.int32]


def measure_lengths(
    run: Run,
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    lengths: Sequence[int],
    prefixes: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """Rep-n of greedy continuations at each of `lengths`, the model's and people's, into the run's lengths.json.

    A greedy text of 50 tokens is the beginning of the one of 300, so each prefix is continued once. Of human text there
    are as many blocks as there are prefixes at most, evenly spread.
    """
    longest = max(lengths)
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if longest > _CHUNK - 1 or (context is not None and longest + 50 > context):
        allowed = min(_CHUNK - 1, (context or _CHUNK + 50) - 50)
        raise ValueError(f"lengths: {longest} tokens are too many; expected at most {allowed}")
    cut = cut_corpus(corpus, tokenizer, chunks=0, prefixes=prefixes)
    texts = _continued(model, cut.prefixes.tolist(), longest, progress)
    ids = encode_corpus(corpus.text, tokenizer)
    found = {
        "protocol": {
            "corpus_sha256": corpus.checksum, "prefixes": len(cut.prefixes),
            "all_prefixes": cut.protocol["all_prefixes"],
        },
        "model": {str(n): _figures([text[:n] for text in texts], tokenizer) for n in lengths},
        "human": {str(n): _figures(spread(human_blocks(ids, n), len(texts)).tolist(), tokenizer) for n in lengths},
    }  # fmt: skip
    before = run.load("lengths") if (run.path / "lengths.json").is_file() else {}
    run.save("lengths", {**before, corpus.name: found})
    return found


def human_blocks(ids: Ids, length: int) -> Ids:
    """Blocks [M, length] of human text: as many as fit into the first 300 tokens of each 301-token chunk.

    >>> human_blocks(np.arange(602, dtype=np.int32), 200)[:, 0].tolist(), len(human_blocks(np.arange(602), 50))
    ([0, 301], 12)
    """
    rows = len(ids) // _CHUNK
    fitting = (_CHUNK - 1) // length * length
    return ids[: rows * _CHUNK].reshape(rows, _CHUNK)[:, :fitting].reshape(-1, length)


def _continued(
    model: Any, prefixes: list[list[int]], new_tokens: int, progress: Callable[[str, int, int], None] | None
) -> list[list[int]]:
    """`new_tokens` greedy ids after each prefix, as many prefixes at a time as fit into memory."""

    def continued(places: slice) -> list[list[int]]:
        return generate(model, prefixes[places], "greedy", max_new_tokens=new_tokens, min_new_tokens=new_tokens)

    size = batch_estimate(model, len(prefixes[0]) + new_tokens, beams=1)
    told = None if progress is None else lambda done, total: progress("lengths", done, total)
    return [ids for part in in_batches(len(prefixes), size, continued, told) for ids in part]


def _figures(blocks: list[list[int]], tokenizer: Any) -> dict[str, float]:
    texts = (tokenizer.decode(b, skip_special_tokens=True, clean_up_tokenization_spaces=False) for b in blocks)
    return text_figures(map(str, texts))
