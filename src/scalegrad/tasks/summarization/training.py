"""Training a summariser with one or several objectives: stage 1 once, then stage 2 for each, all resumable.

OUT/selector-seed-0                 the run of stage 1 (BertSum alone)
OUT/mle-seed-0, OUT/sg-0.8-seed-0   a run for each objective
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scalegrad.data.pairs import Pair
from scalegrad.data.records import Problems
from scalegrad.models import base
from scalegrad.objectives import Objective
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs import Places, Run, run_name
from scalegrad.runs.progress import Progress
from scalegrad.tasks.summarization.batching import token_batches
from scalegrad.tasks.summarization.config import Task
from scalegrad.tasks.summarization.corpora import DEFAULT, checksum
from scalegrad.tasks.summarization.formats import BertSumFormat, Example, format_for, padding
from scalegrad.tasks.summarization.models import is_bert, load_summarizer
from scalegrad.tasks.summarization.noam import two_adams
from scalegrad.tasks.summarization.oracle import oracle
from scalegrad.training import Fitted, fit

Encoded = list[dict[str, torch.Tensor]]


def train(
    task: Task,
    objectives: Iterable[Objective | str],
    out: str | Path,
    *,
    overwrite: bool = False,
    callbacks: Callable[[str], Sequence[Any]] = lambda stage: (),
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> list[Fitted]:
    """Train `task` with each objective; killed at any moment, the same call goes on where it stopped.

    `callbacks(stage)` gives the Trainer's callbacks of a stage, "selector" or an objective's name. `problems` says what
    of records that cannot be used (`data.read_pairs`); `progress` is told of reading, tokenising and validation.
    """
    chosen = [parse_objective(one) if isinstance(one, str) else one for one in objectives]
    if not chosen:
        raise ValueError("objectives must name at least one objective; there is none")
    out, data = Path(out), _Data.of(task, problems, progress)
    bert, encoder = is_bert(task.model), task.model
    if bert and task.recipe.selector is not None:
        encoder = _select(task, data, out, overwrite, callbacks("selector"), progress)
    writer = _Writer(task, encoder, bert, data, progress)
    fitted = []
    for objective in chosen:
        seed = task.recipe.writer.seed
        about = {**data.about, "objective": str(objective), "seed": seed, "template": task.template}
        about |= {"source_seen": task.source_seen}
        folder = out / run_name(objective, seed)
        run = Run.create(folder, about, overwrite=overwrite, places=_places())
        fitted.append(writer.fit(objective, run, callbacks(str(objective))))
    return fitted


def train_selector(task: Task, out: str | Path, problems: Problems | None = None) -> str:
    """Stage 1 alone, where several processes are to share it: the folder of its model."""
    return _select(task, _Data.of(task, problems), Path(out), False, ())


def selector_example(pair: Pair, form: BertSumFormat) -> Example:
    """Stage 1: the source, and for each of its sentences that the encoder reaches whether the oracle takes it."""
    read = form.source(pair)
    chosen = set(oracle(pair.source, pair.references[0]))
    return {**read, "labels": [int(place in chosen) for place in range(len(read["sentence_positions"]))]}


@dataclass(frozen=True)
class _Data:
    """The pairs to train on and to choose by, and what a run's config says of them and of the task."""

    training: list[Pair]
    validation: list[Pair]
    about: dict[str, Any]

    @property
    def both(self) -> tuple[list[Pair], list[Pair]]:
        return self.training, self.validation

    @staticmethod
    def of(task: Task, problems: Problems | None = None, progress: Progress | None = None) -> _Data:
        training, validation = (task.pairs(split, problems, progress) for split in ("train", "validation"))
        named = {"name": task.data, "train": checksum(training), "validation": checksum(validation)}
        about = {"task": "summarization", "model": task.model, "data": named, "recipe": task.recipe.record()}
        return _Data(training, validation, about)


def _places() -> Places:
    """Where a run's config.json may name a file or folder, and the names that mean none."""
    from scalegrad.tasks.summarization.bertsum import DEFAULT_ENCODER

    return {"model": (DEFAULT_ENCODER, base.NAME), "data.name": (DEFAULT,)}


def _select(
    task: Task, data: _Data, out: Path, overwrite: bool, callbacks: Sequence[Any], progress: Progress | None = None
) -> str:
    """Stage 1; the folder of its model."""
    from scalegrad.tasks.summarization.bertsum import SentenceSelector, load_bert, load_bert_tokenizer

    settings = task.recipe.selector
    if settings is None:
        raise ValueError("recipe: it has no settings for stage 1")
    about = {**data.about, "stage": "selector"}
    run = Run.create(out / run_name("selector", settings.seed), about, overwrite=overwrite, places=_places())
    if not run.finished:
        torch.manual_seed(settings.seed)
        tokenizer, bert = load_bert_tokenizer(task.model), load_bert(task.model)
        room = min(task.recipe.source_tokens or 1024, bert.config.max_position_embeddings)
        form = BertSumFormat(tokenizer, room)  # what it cuts, stage 2 cuts too, and tells
        training, validation = (
            _encoded(pairs, lambda pair: selector_example(pair, form), progress) for pairs in data.both
        )
        fit(
            SentenceSelector.from_bert(bert),
            None,
            training,
            validation,
            run,
            settings,
            collate=padding(tokenizer),
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
    progress: Progress | None = None
    examples: tuple[Encoded, Encoded] | None = None  # the same for every objective: made, and their cuts told, once

    def fit(self, objective: Objective, run: Run, callbacks: Sequence[Any]) -> Fitted:
        recipe = self.task.recipe
        if run.finished:
            return Fitted(load_summarizer(str(run.path), "cpu", "float32")[0], run, **run.load("done"))
        torch.manual_seed(recipe.writer.seed)
        model, tokenizer = self._fresh()
        if self.examples is None:
            form = format_for(model, tokenizer, recipe.source_tokens, recipe.target_tokens, self.task.template)
            training, validation = (_encoded(pairs, form.example, self.progress) for pairs in self.data.both)
            self.examples = (training, validation)
            if cut := form.cuts.sentence(form.limits()):
                warnings.warn(cut, stacklevel=3)
        return fit(
            model,
            objective,
            *self.examples,
            run,
            recipe.writer,
            collate=padding(tokenizer),
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


def _encoded(pairs: Sequence[Pair], example: Callable[[Pair], Example], progress: Progress | None) -> Encoded:
    """The example of each pair as small tensors: lists of Python numbers take ten times the memory."""
    encoded = []
    for number, pair in enumerate(pairs, start=1):
        ids = example(pair)
        encoded.append({name: torch.tensor(values, dtype=torch.int32) for name, values in ids.items()})
        if progress and (number % 100 == 0 or number == len(pairs)):
            progress("tokenising (pairs)", number, len(pairs))
    return encoded
