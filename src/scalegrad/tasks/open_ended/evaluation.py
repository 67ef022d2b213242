"""The open-ended columns of the paper's tables for a model on a corpus, with the human row beside."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scalegrad import objectives
from scalegrad.counts import counted
from scalegrad.data import gpt2_tokenizer, read_texts
from scalegrad.decoding import Prefix, Strategy, complete, prefixes_from_ids, start_ids
from scalegrad.models.pretrained import start_text
from scalegrad.runs import Row, Run, rows_of, samples_name, write_lines
from scalegrad.runs.progress import Progress, bind
from scalegrad.tasks.open_ended.config import Evaluation
from scalegrad.tasks.open_ended.corpora import (
    CHUNK_TARGETS,
    NEW_TOKENS,
    PREFIX_TOKENS,
    Corpus,
    cut_corpus,
    decoded,
    text_figures,
)
from scalegrad.tasks.open_ended.next_tokens import score_chunks

HUMAN = "human"


@dataclass(frozen=True)
class Part:
    """Figures that are measured together: their rows, what they were measured under, and notes on that."""

    rows: list[Row]
    settings: dict[str, Any]
    notes: list[str]
    seconds: float


@dataclass(frozen=True)
class _Planned:
    """A part to be measured: `measure(samples, overwrite)` gives its figures and how many things each is a mean of."""

    settings: dict[str, Any]
    measure: Callable[[Path, bool], tuple[Mapping[str, float], int]]

    def part(self, about: Mapping[str, Any], samples: Path, overwrite: bool) -> Part:
        """Measure it now. `about`: what its rows say of the model."""
        began = time.perf_counter()
        figures, n = self.measure(samples, overwrite)
        fields = {name: self.settings[name] for name in _FIELDS if name in self.settings}
        if self.settings.get("objective") == HUMAN:
            fields |= {"objective": HUMAN, "strength": None, "seed": None, "step": None}
        rows = rows_of(figures, **{**about, **fields, "n": n})
        return Part(rows, self.settings, notes(self.settings), round(time.perf_counter() - began, 1))


_FIELDS = ("decoding", "penalty", "corpus", "split", "window", "new_tokens")  # of the settings, in rows too


def evaluate(
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    options: Evaluation | None = None,
    *,
    samples: str | Path | None = None,
    name: str = "",
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Iterator[Part]:
    """Language-modelling and auto-completion figures of a causal LM on `corpus`, part by part.

    - Next tokens, on 1,025-token chunks (shorter where the model's context is): ppl, calibrated_ppl (with `gamma`),
      bits_per_byte, seen_mass, accuracy, rep_window_16 … wrong_rep_window_128, uniq;
    - the same columns under each γ of the strategies (`penalty` "gamma=0.2"), for the model as it decodes under it,
      seen probabilities times γ: what to hold a model trained with that γ against;
    - texts, for each strategy: rep_1, rep_2, rep_3, uniq_w, n_texts of `new_tokens` new tokens after 50-token prefixes;
      and Rep-n without `<unk>` (`rep_1_no_unk`, …) where the corpus has it, since loops of it inflate Rep-n;
    - both of the corpus itself under this tokenizer (`objective` "human"), texts at the length of the model's.

    `about` are fields for every row, such as `model`. The texts go to `samples`/CORPUS-SPLIT.STRATEGY.jsonl, taken up
    again by a later call (without it they are not kept), and how the corpus itself goes on to CORPUS-SPLIT.human.jsonl.
    """
    planned = _plan(model, tokenizer, corpus, options or Evaluation(), name, progress)
    return _measure_all(planned, {"task": "open_ended", **(about or {})}, samples, overwrite)


def _measure_all(
    planned: Sequence[_Planned], about: Mapping[str, Any], samples: str | Path | None, overwrite: bool
) -> Iterator[Part]:
    with _folder(samples) as folder:
        for item in planned:
            yield item.part(about, folder, overwrite)


def evaluate_run(
    run: Run,
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    options: Evaluation | None = None,
    *,
    overwrite: bool = False,
    remake: bool = False,
    progress: Progress | None = None,
) -> list[Part]:
    """`evaluate` a run's model into its folder: each part's rows as soon as they are there, texts to samples/.

    A part that was measured under the same settings is read instead, unless `overwrite`. `remake`: texts that were
    made under other settings are made anew; else they raise ValueError.
    """
    planned = _plan(model, tokenizer, corpus, options or Evaluation(), "", progress)  # no name: the folder may move
    about = {"run": run.path.name, **run.about()}
    parts = []
    for item in planned:
        part = None if overwrite else _stored(run, item.settings)
        if part is None:
            replaced = overwrite or (remake and run.measured(item.settings) is not None)
            part = item.part(about, run.path / "samples", replaced)
            run.add(part.rows, part.settings, notes=part.notes, seconds=part.seconds)
        parts.append(part)
    return parts


def _stored(run: Run, settings: Mapping[str, Any]) -> Part | None:
    """What the run has under these settings."""
    entry = run.evaluation(settings)
    if entry is None:
        return None
    wanted = {name: settings.get(name) for name in _FIELDS}
    human = settings.get("objective") == HUMAN
    rows = [
        row
        for row in run.rows()
        if (row.objective == HUMAN) == human and all(getattr(row, name) == value for name, value in wanted.items())
    ]
    return Part(rows, entry["settings"], entry["notes"], entry["seconds"])


def is_measured(run: Run, corpus: Corpus, options: Evaluation) -> bool:
    """Whether the run has every figure of `options` on `corpus`; nothing is loaded to tell."""
    entries = [entry["settings"] for entry in run.evaluations_now()]

    def there(what: str, limit: int | None, **wanted: Any) -> bool:
        wanted |= {"corpus": corpus.name, "split": corpus.split, "checksum": corpus.checksum, "objective": None}
        most = math.inf if limit is None else limit
        return any(
            all(entry.get(name) == value for name, value in wanted.items())
            and entry.get(what) == min(most, entry.get(f"all_{what}", 0))
            for entry in entries
        )

    tokens = [None, *(penalty.penalty for penalty in options.penalties)] if options.chunks != 0 else []
    texts = options.strategies if options.prefixes != 0 else []
    return all(there("chunks", options.chunks, decoding=None, penalty=penalty) for penalty in tokens) and all(
        there("prefixes", options.prefixes, decoding=s.decoding, penalty=s.penalty, new_tokens=options.new_tokens)
        for s in texts
    )


def _plan(
    model: Any, tokenizer: Any, corpus: Corpus, options: Evaluation, name: str, progress: Progress | None
) -> list[_Planned]:
    """Every part to measure, in order; what cannot be measured is refused here."""
    strategies, before = options.strategies, start_ids(tokenizer, options.start)
    _check(model, options, len(before))
    window = _chunk_targets(model, len(before))
    prefixes = options.prefixes if strategies else 0
    cut = cut_corpus(corpus, tokenizer, window, options.new_tokens, options.chunks, prefixes, progress)
    shared: dict[str, Any] = {"corpus": corpus.name, "split": corpus.split, "checksum": corpus.checksum}
    shared |= {"tokenizer": _vocabulary(tokenizer)}
    own = {"start": start_text(tokenizer, before), "dtype": str(model.dtype).removeprefix("torch.")}
    tokens = shared | {"window": window, "chunks": len(cut.chunks), "all_chunks": cut.all_chunks}
    texts = shared | {"new_tokens": options.new_tokens, "prefixes": len(cut.prefixes), "all_prefixes": cut.all_prefixes}
    planned = []

    @cache
    def scores() -> Any:
        return score_chunks(
            model, tokenizer, cut.chunks, options.calibrate, start=before,
            penalties=[penalty.gamma for penalty in options.penalties], batch=options.batch,
            progress=bind(progress, "predicting"),
        )  # fmt: skip

    def continued(strategy: Strategy, folder: Path, overwrite: bool) -> tuple[Mapping[str, float], int]:
        items = prefixes_from_ids(cut.prefixes.tolist(), tokenizer, before)
        _write_originals(folder / samples_name(corpus.name, corpus.split, HUMAN), items, cut.originals, tokenizer)
        out = folder / samples_name(corpus.name, corpus.split, strategy)
        complete(
            model, tokenizer, items, out, strategy, new_tokens=options.new_tokens,
            min_new_tokens=options.new_tokens, seed=options.seed, batch=options.batch, name=name, overwrite=overwrite,
            progress=bind(progress, str(strategy)),
        )  # fmt: skip
        figures = text_figures(read_texts(out, "continuation"), unknown=cut.unknown)
        return figures, int(figures["n_texts"])

    if len(cut.chunks):
        count = len(cut.chunks)
        calibrated = tokens | own | {"calibrate": options.calibrate}
        planned.append(_Planned(calibrated, lambda *_: (scores().figures, count)))
        for penalty in options.penalties:
            about = tokens | own | {"penalty": penalty.penalty}
            planned.append(_Planned(about, lambda *_, gamma=penalty.gamma: (scores().penalised[gamma], count)))
        planned.append(_Planned(tokens | {"objective": HUMAN}, lambda *_: (cut.human_tokens(), count)))
    if len(cut.prefixes):
        for strategy in strategies:
            about = texts | own | {"decoding": strategy.decoding, "penalty": strategy.penalty}
            about |= {"decoding_seed": options.seed} if strategy.samples else {}
            planned.append(_Planned(about, lambda *where, strategy=strategy: continued(strategy, *where)))
        planned.append(_Planned(texts | {"objective": HUMAN}, lambda *_: (cut.human_texts(tokenizer), len(cut.blocks))))
    return planned


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


def notes(settings: Mapping[str, Any]) -> list[str]:
    """What keeps figures under these settings from being held against the paper's, a sentence each."""
    sentences = []
    of_tokens = "chunks" in settings
    if of_tokens and settings["window"] != CHUNK_TARGETS:
        sentences.append(
            f"Language modelling is on chunks of {settings['window']:,} targets, the model's context, "
            f"not {CHUNK_TARGETS:,}: less context raises perplexity, and the paper's columns do not compare."
        )
    if settings["tokenizer"] != "gpt2":
        sentences.append(
            "The tokenizer is not GPT-2's: perplexity, uniq and Rep/l do not compare with the paper's (bits per byte "
            "does, whatever the tokenizer), and texts of as many tokens differ in length."
        )
    if settings.get("start"):
        sentences.append(
            f"Every chunk and prefix comes after the start symbol {settings['start']}, which is no target and counts "
            "for nothing: the model was trained so."
        )
    what, columns = ("chunks", "uniq") if of_tokens else ("prefixes", "uniq-w")
    if settings[what] < settings[f"all_{what}"]:
        sentences.append(
            f"{settings[what]:,} of {settings[f'all_{what}']:,} {what}, evenly spread over the corpus: {columns} "
            "grows with their number, so it compares only with rows of as many."
        )
    if not of_tokens and settings["new_tokens"] != NEW_TOKENS:
        sentences.append(
            f"Texts have {counted(settings['new_tokens'], 'token')}, not {NEW_TOKENS}: Rep-n grows with length."
        )
    return sentences


def _check(model: Any, options: Evaluation, start: int) -> None:
    if model.config.is_encoder_decoder:
        raise ValueError("model is an encoder-decoder; the open-ended columns are for causal language models")
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    before, new = start + PREFIX_TOKENS, options.new_tokens
    if options.prefixes != 0 and options.strategies and context is not None and before + new > context:
        raise ValueError(
            f"new_tokens is {new}, which after {before} of prefix is more than the model's context of {context}"
        )


def _chunk_targets(model: Any, start: int) -> int:
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return CHUNK_TARGETS if context is None else min(CHUNK_TARGETS, int(context) - start)


def _write_originals(path: Path, prefixes: Sequence[Prefix], originals: list[list[int]], tokenizer: Any) -> None:
    """How the corpus itself goes on, to be read beside the models' texts."""
    texts = decoded(tokenizer, originals)
    records = zip(prefixes, texts, strict=True)
    write_lines(path, [{"id": i, "prefix": p.text, "continuation": text} for i, (p, text) in enumerate(records)])


def _vocabulary(tokenizer: Any) -> str:
    """ "gpt2", or the first digits of a checksum of the vocabulary."""
    vocabulary = dict(tokenizer.get_vocab())
    if vocabulary == gpt2_tokenizer().get_vocab():
        return "gpt2"
    return hashlib.sha256(json.dumps(vocabulary, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def _folder(samples: str | Path | None) -> Iterator[Path]:
    if samples is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    folder_path = Path(samples)
    folder_path.mkdir(parents=True, exist_ok=True)
    yield folder_path
