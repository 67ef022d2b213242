"""Scores of a trained summariser: β chosen on the validation set, then the test set decoded and scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scalegrad.data.pairs import Pair
from scalegrad.runs import Run
from scalegrad.tasks.summarization.formats import Format, format_for
from scalegrad.tasks.summarization.models import load_summarizer
from scalegrad.tasks.summarization.scoring import human, score
from scalegrad.tasks.summarization.selection import CHECKPOINT_RULE, DECODING_RULE, choose_beta
from scalegrad.tasks.summarization.writing import BEAM, BETAS, summarize

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Evaluation:
    """How to evaluate: which strategies beside the beam, which β, and how to score.

    `betas` with one value takes it as it is. `strategies` are decoded without choosing anything.
    """

    betas: tuple[float, ...] = BETAS
    strategies: tuple[str, ...] = ()
    beams: int = BEAM.size
    min_new_tokens: int = 0
    max_new_tokens: int = 140
    mover: bool = True
    seed: int = 0
    batch: int | None = None
    device: str = "auto"
    dtype: str = "auto"

    @staticmethod
    def of(recipe: dict[str, Any], **others: Any) -> Evaluation:
        """With the lengths of a run's recipe."""
        lengths = {name: recipe[name] for name in ("min_new_tokens", "max_new_tokens")}
        return Evaluation(**{**lengths, **others})


def evaluate_run(
    run: Run, validation: Sequence[Pair], test: Sequence[Pair], how: Evaluation, progress: Progress | None = None
) -> dict[str, Any]:
    """Evaluate a finished run; its folder gets `evaluation.json` and `samples/STRATEGY.jsonl`."""
    if not run.finished:
        raise ValueError(f"{run.path} holds a run that is not finished: train it to its end first")
    model, tokenizer = load_summarizer(str(run.path), how.device, how.dtype)
    recipe = run.config["recipe"]
    form = format_for(model, tokenizer, recipe["source_tokens"], recipe["target_tokens"], run.config["prompt"])
    results, texts = evaluate(model, form, validation, test, how, run.config["source_seen"], progress)
    results = {"objective": run.config["objective"], "checkpoint_rule": CHECKPOINT_RULE, **results}
    for name, written in texts.items():
        run.save(f"samples/{name}.jsonl", samples(written, test))
    run.save("evaluation", results)
    return results


def evaluate(
    model: Any,
    form: Format,
    validation: Sequence[Pair],
    test: Sequence[Pair],
    how: Evaluation,
    source_seen: bool = False,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Figures by strategy and the summaries they are of; the beam's β is the best on `validation`."""
    writing: dict[str, Any] = {
        "min_new_tokens": how.min_new_tokens,
        "max_new_tokens": how.max_new_tokens,
        "source_seen": source_seen,
        "seed": how.seed,
        "batch": how.batch,
    }
    beam = replace(BEAM, size=how.beams)
    chosen: dict[str, Any] = {"beta": how.betas[0], "rule": "given"}
    if len(how.betas) > 1:
        found = choose_beta(model, form, validation, how.betas, beam, _told(progress, "choosing β"), **writing)
        chosen = {"beta": found.value, "rule": DECODING_RULE, "validation_scores": _by_name(found.scores)}
    strategies = {"beam": str(replace(beam, gnmt=chosen["beta"])), **{name: name for name in how.strategies}}
    figures, texts = {}, {}
    for name, strategy in strategies.items():
        began = time.perf_counter()
        texts[name] = summarize(model, form, test, strategy, progress=_told(progress, name), **writing)
        seconds = time.perf_counter() - began
        figures[name] = {
            "strategy": strategy,
            "seconds": round(seconds, 2),
            **score(texts[name], test, mover=how.mover, device=str(model.device)),
        }
    return {"length_normalisation": chosen, "figures": figures, "human": human(test)}, texts


def samples(texts: Sequence[str], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A record for each summary, with its article and references."""
    return [
        {"id": pair.id, "source": pair.text, "references": list(pair.references), "summary": text}
        for text, pair in zip(texts, pairs, strict=True)
    ]



def _told(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(what, done, total)


def _by_name(scores: dict[float, float]) -> dict[str, float]:
    return {str(value): score for value, score in scores.items()}
