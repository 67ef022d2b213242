"""The open-ended columns of the paper's tables for a model on a corpus, with the human row beside."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalegrad import objectives
from scalegrad.counts import counted
from scalegrad.data import (
    completion_blocks,
    encode_corpus,
    gpt2_tokenizer,
    language_modelling_chunks,
    read_texts,
)
from scalegrad.decoding import Prefix, Strategy, complete, parse, prefixes_from_ids, start_ids
from scalegrad.metrics import clean_up_spaces, human_next_token, repetition
from scalegrad.models.start import start_text
from scalegrad.runs import Run, samples_name, write_lines
from scalegrad.runs.progress import Progress, bind
from scalegrad.tasks.open_ended.corpora import Corpus
from scalegrad.tasks.open_ended.kept_figures import merged
from scalegrad.tasks.open_ended.next_tokens import score_chunks

CHUNK_TARGETS = 1024
PREFIX_TOKENS = 50
NEW_TOKENS = 100
_UNKNOWN = "<unk>"

Ids = NDArray[np.int32]


def evaluate(
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    *,
    strategies: Sequence[str | Strategy] = ("greedy",),
    gamma: float | None = None,
    chunks: int | None = None,
    prefixes: int | None = None,
    new_tokens: int = NEW_TOKENS,
    batch: int | None = None,
    seed: int = 0,
    start: str = "auto",
    samples: str | Path | None = None,
    name: str = "",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Language-modelling and auto-completion figures of a causal LM on `corpus`, as plain JSON values.

    - "language_modelling": on 1,025-token chunks (shorter where the model's context is): ppl, calibrated_ppl (with
      `gamma`), bits_per_byte, seen_mass, accuracy, rep_window_16 … wrong_rep_window_128, uniq;
    - "penalised": for each γ of the strategies, {"gamma=0.2": …}, the columns above for the model as it decodes under
      it, seen probabilities times γ: what to hold a model trained with that γ against;
    - "completion": for each strategy rep_1, rep_2, rep_3, uniq_w, n_texts of `new_tokens` new tokens after 50-token
      prefixes; and Rep-n without `<unk>` (`rep_1_no_unk`, …) where the corpus has it, since loops of it inflate Rep-n;
    - "human": the same of the corpus itself under this tokenizer, completion at the length of the model's texts;
    - "protocol": what was cut how; "notes": what keeps figures from being compared, in sentences.

    `chunks` and `prefixes` take only so many of each, evenly spread over the corpus; 0 leaves the columns out.
    `start`: whether each chunk and prefix comes after the model's start symbol ("auto", "yes" or "no": `start_ids`),
    which is no target and counts for nothing; the targets are the same with it and without. The texts go to
    `samples`/CORPUS.STRATEGY.jsonl, taken up again by a later call (without it they are not kept), and how the corpus
    itself goes on to CORPUS.human.jsonl.
    """
    began = time.perf_counter()
    parsed = [parse(strategy) if isinstance(strategy, str) else strategy for strategy in strategies]
    before = start_ids(tokenizer, start)
    _check(model, chunks, prefixes, new_tokens, parsed, len(before))
    targets = _chunk_targets(model, len(before))
    cut = cut_corpus(corpus, tokenizer, targets, new_tokens, chunks, prefixes if parsed else 0, progress)
    found: dict[str, Any] = {"corpus": corpus.name}
    if len(cut.chunks):
        scores = score_chunks(
            model, tokenizer, cut.chunks, gamma, start=before,
            penalties=_penalties(parsed), batch=batch, progress=bind(progress, "predicting"),
        )  # fmt: skip
        found["language_modelling"] = scores.figures
        found["penalised"] = {f"gamma={penalty}": figures for penalty, figures in scores.penalised.items()}
    if len(cut.prefixes):
        found["completion"] = {}
        items = prefixes_from_ids(cut.prefixes.tolist(), tokenizer, before)
        with _folder(samples) as folder:
            _write_originals(folder / samples_name(corpus.name, "human"), items, cut.originals, tokenizer)
            for strategy in parsed:
                out = folder / samples_name(corpus.name, strategy)
                complete(
                    model, tokenizer, items, out, strategy, max_new_tokens=new_tokens, min_new_tokens=new_tokens,
                    seed=seed, batch=batch, name=name, overwrite=overwrite, progress=bind(progress, str(strategy)),
                )  # fmt: skip
                texts = read_texts(out, "continuation")
                found["completion"][str(strategy)] = text_figures(texts, unknown=cut.protocol["unknown"])
    found["human"] = human_figures(cut, tokenizer)
    found["protocol"] = cut.protocol | {"gpt2_tokenizer": _is_gpt2(tokenizer), "gamma": gamma, "seed": seed}
    found["protocol"]["start"] = start_text(tokenizer, before)
    found["notes"] = notes(found["protocol"])
    found["seconds"] = round(time.perf_counter() - began, 1)
    return found


def evaluate_run(run: Run, model: Any, tokenizer: Any, corpus: Corpus, **options: Any) -> dict[str, Any]:
    """`evaluate` a run's model into the run's folder: figures to evaluation.json, texts to samples/.

    Figures of other corpora stay; so do columns and decodings that are not asked for now, where what they were
    measured on is the same (`kept_figures.lost` names those that do not).
    """
    found = evaluate(model, tokenizer, corpus, **options, samples=run.path / "samples")  # no name: the folder may move
    before = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
    found = merged(before.get(corpus.name, {}), found)
    found["notes"] = notes(found["protocol"])
    run.save("evaluation", {**before, corpus.name: found})
    return found


def saved_gamma(config: Any) -> float | None:
    """The γ a saved model was trained with (1 for MLE), from the record in its config; None where there is none.

    >>> from types import SimpleNamespace
    >>> saved_gamma(SimpleNamespace(scalegrad={"objective": "sg", "gamma": 0.2})), saved_gamma(SimpleNamespace())
    (0.2, None)
    >>> saved_gamma(SimpleNamespace(scalegrad={"objective": "sg", "gamma": "linear:1.0:0.3:100"}))  # where it ended
    0.3
    """
    objective = objectives.of_record(getattr(config, "scalegrad", None) or {})
    if objective is None or objective.name == "ul":
        return None  # none there, a function of position or entropy, or another objective's strength
    gamma: Any = objective.strength
    return 1.0 if gamma is None else float(getattr(gamma, "stop", gamma))


@dataclass(frozen=True)
class CutCorpus:
    """A corpus cut as the protocol says: chunks to predict, prefixes to continue, human text as long as the answers."""

    chunks: Ids  # [M, targets + 1]
    prefixes: Ids  # [P, 50]
    originals: list[list[int]]  # how the corpus goes on after each prefix, new_tokens of it
    blocks: Ids  # [P or fewer, new_tokens]
    protocol: dict[str, Any]  # how it was cut


def cut_corpus(
    corpus: Corpus,
    tokenizer: Any,
    targets: int = CHUNK_TARGETS,
    new_tokens: int = NEW_TOKENS,
    chunks: int | None = None,
    prefixes: int | None = None,
    progress: Progress | None = None,
) -> CutCorpus:
    """Cut `corpus` for `evaluate`; `chunks` and `prefixes` as there."""
    ids = encode_corpus(corpus.text, tokenizer, progress)
    all_chunks, all_prefixes = language_modelling_chunks(ids, targets), completion_blocks(ids, PREFIX_TOKENS)
    chosen, starts = spread(all_chunks, chunks), spread(all_prefixes, prefixes)
    if chunks != 0 and not len(chosen):
        raise ValueError(
            f"corpus: {corpus.name} has {counted(len(ids), 'token')}, fewer than one chunk of {targets + 1:,}"
        )
    if prefixes != 0 and not len(starts):
        raise ValueError(f"corpus: {corpus.name} has {counted(len(ids), 'token')}; prefixes are cut from chunks of 301")
    protocol = {
        "chunk_targets": targets,
        "chunks": len(chosen),
        "all_chunks": len(all_chunks),
        "prefix_tokens": PREFIX_TOKENS,
        "new_tokens": new_tokens,
        "prefixes": len(starts),
        "all_prefixes": len(all_prefixes),
        "unknown": _UNKNOWN in corpus.text,
        "corpus_sha256": corpus.checksum,
    }
    ends = spread(completion_blocks(np.arange(len(ids), dtype=np.int32), PREFIX_TOKENS), prefixes)[:, -1] + 1
    originals = [ids[end : end + new_tokens].tolist() for end in ends]
    blocks = spread(completion_blocks(ids, new_tokens), len(starts))
    return CutCorpus(chosen, starts, originals, blocks, protocol)


def human_figures(cut: CutCorpus, tokenizer: Any) -> dict[str, dict[str, float]]:
    """The human row of a cut corpus, under the same keys as a model's figures."""
    found = {}
    if len(cut.chunks):
        found["language_modelling"] = human_next_token(cut.chunks[:, 1:])
    if len(cut.blocks):
        found["completion"] = text_figures(_decoded(tokenizer, cut.blocks.tolist()), unknown=cut.protocol["unknown"])
    return found


def text_figures(texts: Iterable[str], unknown: bool = False) -> dict[str, float]:
    """Rep-1 … Rep-3, uniq-w and n_texts of texts after the paper's clean-up; with `unknown` also without `<unk>`.

    >>> text_figures(["a <unk> <unk> <unk> b c d ."], unknown=True)["rep_1_no_unk"]
    0.0
    """
    cleaned = [clean_up_spaces(text) for text in texts]
    figures = _columns(repetition(cleaned))
    if unknown:
        without = _columns(repetition(text.replace(_UNKNOWN, "") for text in cleaned))
        figures |= {f"{key}_no_unk": without[key] for key in ("rep_1", "rep_2", "rep_3")}
    return figures


def notes(protocol: dict[str, Any]) -> list[str]:
    """What keeps figures of this protocol from being held against the paper's, a sentence each."""
    said = []
    if protocol["chunks"] and protocol["chunk_targets"] != CHUNK_TARGETS:
        said.append(
            f"Language modelling is on chunks of {protocol['chunk_targets']:,} targets, the model's context, "
            f"not {CHUNK_TARGETS:,}: less context raises perplexity, and the paper's columns do not compare."
        )
    if not protocol["gpt2_tokenizer"]:
        said.append(
            "The tokenizer is not GPT-2's: perplexity, uniq and Rep/l do not compare with the paper's (bits per byte "
            "does, whatever the tokenizer), and texts of as many tokens differ in length."
        )
    if protocol.get("start"):
        said.append(
            f"Every chunk and prefix comes after the start symbol {protocol['start']}, which is no target and counts "
            "for nothing: the model was trained so."
        )
    for what, columns in (("chunks", "uniq"), ("prefixes", "uniq-w")):
        if 0 < protocol[what] < protocol[f"all_{what}"]:
            said.append(
                f"{protocol[what]:,} of {protocol[f'all_{what}']:,} {what}, evenly spread over the corpus: {columns} "
                "grows with their number, so it compares only with rows of as many."
            )
    if protocol["prefixes"] and protocol["new_tokens"] != NEW_TOKENS:
        said.append(
            f"Texts have {counted(protocol['new_tokens'], 'token')}, not {NEW_TOKENS}: Rep-n grows with length."
        )
    return said


def check_limits(chunks: int | None, prefixes: int | None, new_tokens: int) -> None:
    """Refuse limits that `evaluate` would refuse: known before any model is trained."""
    for what, number in (("chunks", chunks), ("prefixes", prefixes)):
        if number is not None and number < 0:
            raise ValueError(f"{what} is {number}; expected 1 or more, or 0 to leave its columns out")
    if new_tokens < 1:
        raise ValueError(f"new_tokens is {new_tokens}; expected 1 or more")


def _check(
    model: Any, chunks: int | None, prefixes: int | None, new: int, strategies: Sequence[Strategy], start: int
) -> None:
    if model.config.is_encoder_decoder:
        raise ValueError("model is an encoder-decoder; the open-ended columns are for causal language models")
    check_limits(chunks, prefixes, new)
    if chunks == 0 and (prefixes == 0 or not strategies):
        raise ValueError("chunks and prefixes are both left out: nothing to evaluate")
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    before = start + PREFIX_TOKENS
    if prefixes != 0 and strategies and context is not None and before + new > context:
        raise ValueError(
            f"new_tokens is {new}, which after {before} of prefix is more than the model's context of {context}"
        )


def _penalties(strategies: Sequence[Strategy]) -> list[float]:
    return sorted({strategy.gamma for strategy in strategies if strategy.gamma < 1.0})


def _chunk_targets(model: Any, start: int) -> int:
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return CHUNK_TARGETS if context is None else min(CHUNK_TARGETS, int(context) - start)


def spread(rows: Ids, count: int | None) -> Ids:
    """`count` of the rows, evenly spread; all of them where there are no more."""
    if count is None or count >= len(rows):
        return rows
    return rows[(np.arange(count) * len(rows)) // max(count, 1)]


def _columns(figures: dict[str, float]) -> dict[str, float]:
    return {key: value for key, value in figures.items() if key != "rep_4"}


def _decoded(tokenizer: Any, blocks: list[list[int]]) -> Iterator[str]:
    for block in blocks:
        yield str(tokenizer.decode(block, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _write_originals(path: Path, prefixes: Sequence[Prefix], originals: list[list[int]], tokenizer: Any) -> None:
    """How the corpus itself goes on, to be read beside the models' texts."""
    texts = _decoded(tokenizer, originals)
    records = zip(prefixes, texts, strict=True)
    write_lines(path, [{"id": i, "prefix": p.text, "continuation": text} for i, (p, text) in enumerate(records)])


def _is_gpt2(tokenizer: Any) -> bool:
    return bool(dict(tokenizer.get_vocab()) == gpt2_tokenizer().get_vocab())


@contextmanager
def _folder(samples: str | Path | None) -> Iterator[Path]:
    if samples is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    folder_path = Path(samples)
    folder_path.mkdir(parents=True, exist_ok=True)
    yield folder_path
