"""Repetition of continuations by their length: written once at the longest, measured on each beginning of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scalegrad.data import completion_blocks, encode_corpus
from scalegrad.decoding import generate, start_ids
from scalegrad.models.memory import batch_estimate, in_batches
from scalegrad.runs import Run
from scalegrad.tasks.open_ended.corpora import Corpus
from scalegrad.tasks.open_ended.evaluation import PREFIX_TOKENS, cut_corpus, spread, text_figures


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
    longest, start = max(lengths), start_ids(tokenizer)
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    before = len(start) + PREFIX_TOKENS
    if context is not None and before + longest > context:
        raise ValueError(f"lengths: {longest} tokens are too many; expected at most {context - before}")
    cut = cut_corpus(corpus, tokenizer, chunks=0, prefixes=prefixes)
    texts = _continued(model, [[*start, *ids] for ids in cut.prefixes.tolist()], longest, progress)
    ids = encode_corpus(corpus.text, tokenizer)
    found = {
        "protocol": {
            "corpus_sha256": corpus.checksum, "prefixes": len(cut.prefixes),
            "all_prefixes": cut.protocol["all_prefixes"],
        },
        "model": {str(n): _figures([text[:n] for text in texts], tokenizer) for n in lengths},
        "human": {str(n): _figures(spread(completion_blocks(ids, n), len(texts)).tolist(), tokenizer) for n in lengths},
    }  # fmt: skip
    before = run.load("lengths") if (run.path / "lengths.json").is_file() else {}
    run.save("lengths", {**before, corpus.name: found})
    return found


def _continued(
    model: Any, prefixes: list[list[int]], new_tokens: int, progress: Callable[[str, int, int], None] | None
) -> list[list[int]]:
    """`new_tokens` greedy ids after each prefix, as many prefixes at a time as fit into memory."""

    def continued(places: slice) -> list[list[int]]:
        return generate(model, prefixes[places], "greedy", new_tokens=new_tokens, min_new_tokens=new_tokens)

    size = batch_estimate(model, len(prefixes[0]) + new_tokens, beams=1)
    told = None if progress is None else lambda done, total: progress("lengths", done, total)
    return [ids for part in in_batches(len(prefixes), size, continued, told) for ids in part]


def _figures(blocks: list[list[int]], tokenizer: Any) -> dict[str, float]:
    texts = (tokenizer.decode(b, skip_special_tokens=True, clean_up_tokenization_spaces=False) for b in blocks)
    return text_figures(map(str, texts))
