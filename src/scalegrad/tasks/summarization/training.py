"""Training a summariser with one or several objectives: stage 1 once, then stage 2 for each, all resumable.

OUT/selector            the run of stage 1 (BertSum alone)
OUT/mle, OUT/sg=0.8 …   a run for each objective
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scalegrad.data.pairs import Pair
from scalegrad.models import base
from scalegrad.objectives import Objective
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs import Places, Run
from scalegrad.tasks.summarization.batching import token_batches
from scalegrad.tasks.summarization.config import Task
from scalegrad.tasks.summarization.corpora import DEFAULT
from scalegrad.tasks.summarization.formats import BertSumFormat, Collate, Example, Format, format_for
from scalegrad.tasks.summarization.models import is_bert, load_summarizer
from scalegrad.tasks.summarization.noam import two_adams
from scalegrad.tasks.summarization.oracle import oracle
from scalegrad.training import Fitted, fit

Encoded = list[dict[str, torch.Tensor]]

FILES = ("evaluation.json",)  # what this task saves in a run's folder, beside what every run has


def train(
    task: Task,
    objectives: Iterable[Objective | str],
    out: str | Path,
    *,
    overwrite: bool = False,
    callbacks: Callable[[str], Sequence[Any]] = lambda stage: (),
) -> list[Fitted]:
    """Train `task` with each objective; killed at any moment, the same call goes on where it stopped.

    `callbacks(stage)` gives the Trainer's callbacks of a stage, "selector" or an objective's name.
    """
    chosen = [parse_objective(one) if isinstance(one, str) else one for one in objectives]
    if not chosen:
        raise ValueError("objectives must name at least one objective; there is none")
    out, data = Path(out), _Data.of(task)
    bert, encoder = is_bert(task.model), task.model
    if bert and task.recipe.selector is not None:
        encoder = _select(task, data, out, overwrite, callbacks("selector"))
    writer = _Writer(task, encoder, bert, data)
    fitted = []
    for objective in chosen:
        about = {**data.about, "objective": str(objective), "template": task.template, "source_seen": task.source_seen}
        folder = out / folder_name(objective)
        run = Run.create(folder, about, overwrite=overwrite, places=_places(), files=FILES)
        fitted.append(writer.fit(objective, run, callbacks(str(objective))))
    return fitted


def train_selector(task: Task, out: str | Path) -> str:
    """Stage 1 alone, where several processes are to share it: the folder of its model."""
    return _select(task, _Data.of(task), Path(out), False, ())


def folder_name(objective: Objective) -> str:
    """The name of an objective's folder.

    >>> folder_name(parse_objective("sg=linear:1.0:0.8:100"))
    'sg=linear-1.0-0.8-100'
    """
    return str(objective).replace(":", "-")


def selector_examples(pairs: Sequence[Pair], form: BertSumFormat) -> list[Example]:
    """Stage 1: the source, and for each of its sentences that the encoder reaches whether the oracle takes it."""
    examples = []
    for pair in pairs:
        read = form.source(pair)
        chosen = set(oracle(pair.source, pair.references[0]))
        labels = [int(place in chosen) for place in range(len(read["sentence_positions"]))]
        examples.append({**read, "labels": labels})
    return examples


@dataclass(frozen=True)
class _Data:
    """The pairs to train on and to choose by, and what a run's config says of them and of the task."""

    training: list[Pair]
    validation: list[Pair]
    about: dict[str, Any]

    @staticmethod
    def of(task: Task) -> _Data:
        training, validation = task.pairs("train"), task.pairs("validation")
        named = {"name": task.data, "train": _checksum(training), "validation": _checksum(validation)}
        about = {"task": "summarization", "model": task.model, "data": named, "recipe": task.recipe.record()}
        return _Data(training, validation, about)


def _places() -> Places:
    """Where a run's config.json may name a file or folder, and the names that mean none."""
    from scalegrad.tasks.summarization.bertsum import DEFAULT_ENCODER

    return {"model": (DEFAULT_ENCODER, base.NAME), "data.name": (DEFAULT,)}


def _select(task: Task, data: _Data, out: Path, overwrite: bool, callbacks: Sequence[Any]) -> str:
    """Stage 1; the folder of its model."""
    from scalegrad.tasks.summarization.bertsum import SentenceSelector, load_bert, load_bert_tokenizer

    settings = task.recipe.selector
    if settings is None:
        raise ValueError("recipe: it has no settings for stage 1")
    about = {**data.about, "stage": "selector"}
    run = Run.create(out / "selector", about, overwrite=overwrite, places=_places(), files=FILES)
    if not run.finished:
        torch.manual_seed(settings.seed)
        tokenizer, bert = load_bert_tokenizer(task.model), load_bert(task.model)
        room = min(task.recipe.source_tokens or 1024, bert.config.max_position_embeddings)
        form = BertSumFormat(tokenizer, room)  # what it cuts, stage 2 cuts too, and tells
        fit(
            SentenceSelector.from_bert(bert),
            None,
            _compact(selector_examples(data.training, form)),
            _compact(selector_examples(data.validation, form)),
            run,
            settings,
            collate=Collate(tokenizer.pad_token_id),
            tokenizer=tokenizer,
            optimizers=two_adams(task.recipe.selector_rate, task.recipe.selector_rate),
            callbacks=callbacks,
        )
    return str(run.model_path)


@dataclass
class _Writer:
    """Stage 2, or the fine-tuning of another model, for one objective after another."""

    task: Task
    encoder: str
    bert: bool
    data: _Data
    examples: tuple[Encoded, Encoded] | None = None  # the same for every objective: made, and their cuts told, once

    def fit(self, objective: Objective, run: Run, callbacks: Sequence[Any]) -> Fitted:
        recipe = self.task.recipe
        if run.finished:
            return Fitted(load_summarizer(str(run.path), "cpu", "float32")[0], run, **run.load("done"))
        torch.manual_seed(recipe.writer.seed)
        model, tokenizer = self._fresh()
        if self.examples is None:
            form = format_for(model, tokenizer, recipe.source_tokens, recipe.target_tokens, self.task.template)
            self.examples = (_encoded(form, self.data.training), _encoded(form, self.data.validation))
            if told := form.cuts.sentence(form.limits()):
                warnings.warn(told, stacklevel=3)
        pad = tokenizer.pad_token_id
        return fit(
            model,
            objective,
            *self.examples,
            run,
            recipe.writer,
            collate=Collate(0 if pad is None else pad),
            tokenizer=tokenizer,
            prompt=self.task.source_seen,
            loss_options={"label_smoothing": recipe.label_smoothing},
            optimizers=two_adams(recipe.encoder, recipe.decoder) if self.bert else None,
            batch_sampler=None if recipe.tokens is None else token_batches(recipe.tokens),
            callbacks=callbacks,
        )

    def _fresh(self) -> tuple[Any, Any]:
        if not self.bert:
            return load_summarizer(self.encoder, "cpu", "float32")
        from scalegrad.tasks.summarization.bertsum import BertSum, load_bert, load_bert_tokenizer

        tokenizer = load_bert_tokenizer(self.encoder)
        return BertSum.from_bert(load_bert(self.encoder), tokenizer, **self.task.recipe.decoder_shape), tokenizer


def _encoded(form: Format, pairs: Sequence[Pair]) -> Encoded:
    return _compact([form.example(pair) for pair in pairs])


def _compact(examples: Sequence[Example]) -> Encoded:
    """The same as small tensors: lists of Python numbers take ten times the memory."""
    return [{name: torch.tensor(ids, dtype=torch.int32) for name, ids in example.items()} for example in examples]


def _checksum(pairs: Sequence[Pair]) -> dict[str, Any]:
    """How many pairs, and a checksum of them."""
    digest = hashlib.blake2b(digest_size=8)
    for pair in pairs:
        digest.update("\0".join((*pair.source, "", *pair.references, "\n")).encode())
    return {"pairs": len(pairs), "checksum": digest.hexdigest()}
