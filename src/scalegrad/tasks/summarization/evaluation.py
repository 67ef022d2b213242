"""Scores of a trained summariser: β chosen on the validation set, then the test set decoded and scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scalegrad.data.pairs import Pair
from scalegrad.runs import Run, samples_name
from scalegrad.tasks.summarization.config import BEAM, Evaluation
from scalegrad.tasks.summarization.formats import Cuts, Format, format_for
from scalegrad.tasks.summarization.models import load_summarizer
from scalegrad.tasks.summarization.scoring import human, score
from scalegrad.tasks.summarization.selection import CHECKPOINT_RULE, DECODING_RULE, choose_beta
from scalegrad.tasks.summarization.writing import summarize

Progress = Callable[[str, int, int], None]


def evaluate_run(
    run: Run,
    corpus: str,
    validation: Sequence[Pair],
    test: Sequence[Pair],
    how: Evaluation,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Evaluate a finished run on `corpus`; its folder gets the figures (evaluation.json) and summaries (samples/)."""
    if not run.finished:
        raise ValueError(f"{run.path} holds a run that is not finished: train it to its end first")
    model, tokenizer = load_summarizer(str(run.path), how.device, how.dtype)
    recipe = run.config["recipe"]
    form = format_for(model, tokenizer, recipe["source_tokens"], recipe["target_tokens"], run.config["template"])
    results, texts = evaluate(model, form, validation, test, how, run.config["source_seen"], progress)
    for name, written in texts.items():
        run.save(f"samples/{samples_name(corpus, name)}", samples(written, test))
    run.save(f"samples/{samples_name(corpus, 'human')}", samples([pair.references[0] for pair in test], test))
    before = run.load("evaluation") if (run.path / "evaluation.json").is_file() else {}
    run.save("evaluation", {**before, corpus: results})
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
    """Figures and the summaries they are of; the beam's β is the best on `validation`.

    "completion" has the mean figures of each decoding ("beam" first), "intervals" each figure's 95% bootstrap interval,
    "human" the figures of the references, "length_normalisation" what β was chosen and how.
    """
    writing: dict[str, Any] = {
        "min_new_tokens": how.min_new_tokens,
        "new_tokens": how.new_tokens,
        "source_seen": source_seen,
        "seed": how.seed,
        "batch": how.batch,
    }
    beam = replace(BEAM, size=how.beams)
    chosen: dict[str, Any] = {"beta": how.betas[0], "rule": "given"}
    if len(how.betas) > 1:
        found = choose_beta(model, form, validation, how.betas, beam, _told(progress, "choosing β"), **writing)
        scores = {str(beta): value for beta, value in found.scores.items()}
        chosen = {"beta": found.value, "rule": DECODING_RULE, "pairs": len(validation), "validation_scores": scores}
    strategies = {"beam": str(replace(beam, gnmt=chosen["beta"])), **{name: name for name in how.strategies}}
    texts, figures, seconds = {}, {}, {}
    for name, strategy in strategies.items():
        began = time.perf_counter()
        texts[name] = summarize(model, form, test, strategy, progress=_told(progress, name), **writing)
        seconds[name] = round(time.perf_counter() - began, 2)
        figures[name] = score(texts[name], test, mover=how.mover, device=str(model.device))
    people = human(test)
    results = {
        "completion": {name: means(found) for name, found in figures.items()},
        "intervals": {name: intervals(found) for name, found in {**figures, "human": people}.items()},
        "human": {"references": means(people)},
        "length_normalisation": chosen,
        "checkpoint_rule": CHECKPOINT_RULE,
        "strategies": strategies,
        "seconds": seconds,
        "notes": _notes(form, test, how),
    }
    return results, texts


def samples(texts: Sequence[str], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A record for each summary: its article is the prefix, itself the continuation."""
    return [
        {"id": pair.id, "prefix": pair.text, "references": list(pair.references), "continuation": text}
        for text, pair in zip(texts, pairs, strict=True)
    ]


def means(figures: dict[str, Any]) -> dict[str, float]:
    """The figures without their intervals."""
    return {name: value["mean"] if isinstance(value, dict) else value for name, value in figures.items()}


def intervals(figures: dict[str, Any]) -> dict[str, list[float]]:
    """[low, high] of each figure that has an interval."""
    return {name: [value["low"], value["high"]] for name, value in figures.items() if isinstance(value, dict)}


def _notes(form: Format, test: Sequence[Pair], how: Evaluation) -> list[str]:
    """What a reader should know of these figures."""
    form.cuts = Cuts()  # each article of the test set once, however often it was decoded
    for pair in test:
        form.source(pair)
    cut = form.cuts.sentence({"articles": form.limits()["articles"]})
    mover = "MoverScore-1 is of all-MiniLM-L6-v2, not of the paper's BERT: it does not compare with the paper's."
    return ([f"{cut}."] if cut else []) + ([mover] if how.mover else [])


def _told(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(what, done, total)
