"""Scores of a trained summariser: β chosen on the validation set, then the test set decoded and scored.

Chosen on the validation set are

- the checkpoint: the one with the least plain validation NLL, whatever the objective (`scalegrad.training.fit`);
- the length normalisation β of each model: the highest mean of ROUGE-1, -2 and -L F1 of its beam search;
- the strength, α of unlikelihood and γ of ScaleGrad: the run with the highest such mean at its own best β.

Ties go to the smaller number, so that the choice does not depend on the order of the grid.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scalegrad.data.pairs import Pair
from scalegrad.decoding.strategies import Beam, Strategy, parse
from scalegrad.runs import Row, Run, rows_of, samples_name
from scalegrad.runs.progress import Done, Progress, bind
from scalegrad.tasks.summarization.config import BEAM, BETAS, Evaluation
from scalegrad.tasks.summarization.corpora import checksum
from scalegrad.tasks.summarization.formats import Cuts, Format, format_for
from scalegrad.tasks.summarization.models import load_summarizer
from scalegrad.tasks.summarization.scoring import human, mean_rouge, score
from scalegrad.tasks.summarization.writing import summarize

TEST, VALIDATION = "test", "validation"  # the splits of rows
CHOICE = "mean_rouge"  # the figure that settings are chosen by, on the validation set
CHECKPOINT_RULE = "least plain validation NLL"
DECODING_RULE = "highest mean of ROUGE-1, -2 and -L F1 on the validation set"
DECIDES = ("min_new_tokens", "new_tokens", "mover", "dtype")  # settings that decide every decoding's figures
MOVER_NOTE = "MoverScore-1 is of all-MiniLM-L6-v2, not of the paper's BERT: it does not compare with the paper's."


@dataclass(frozen=True)
class Choice:
    """The value chosen, its score, and the score of every value of the grid."""

    value: float
    score: float
    scores: dict[float, float]


@dataclass(frozen=True)
class _Part:
    """What is measured at once: one decoding, under settings that decide its figures."""

    strategy: Strategy
    betas: tuple[float, ...]  # to choose from; () where the strategy is taken as it is
    settings: dict[str, Any]


def evaluate_run(
    run: Run,
    corpus: str,
    validation: Sequence[Pair],
    test: Sequence[Pair],
    how: Evaluation,
    progress: Progress | None = None,
) -> list[Row]:
    """Evaluate a finished run on `corpus`: the rows of each decoding, the beam's first, then those of the references.

    The run's folder gets the rows, the summaries (samples/), and for each decoding a line in evaluations.jsonl with its
    strategy, seconds and notes, for the beam with the choice of β. Where β is chosen, a row of the split "validation"
    has the mean ROUGE by which it was. What was measured under these settings before is not measured again.
    """
    if not run.finished:
        raise ValueError(f"{run.path} holds a run that is not finished: train it to its end first")
    about = {"corpus": corpus, "split": TEST, "checksum": checksum(test)["checksum"]}
    parts = _parts(about, validation, how)
    missing = [part for part in parts if run.evaluation(part.settings) is None]
    if missing:
        model, tokenizer = load_summarizer(str(run.path), how.device, how.dtype)
        recipe = run.config["recipe"]
        form = format_for(model, tokenizer, recipe["source_tokens"], recipe["target_tokens"], run.config["template"])
        for part in missing:
            _measure(run, model, form, part, validation, test, how, progress)
    if run.evaluation({**about, "objective": "human"}) is None:
        run.save(_samples_file(corpus, "human"), samples([pair.references[0] for pair in test], test))
        figures = rows_of(human(test), objective="human", task="summarization", corpus=corpus, split=TEST)
        run.add(figures, {**about, "objective": "human"})
    decodings = [(part.strategy.decoding, part.strategy.penalty) for part in parts]
    rows = [row for row in run.rows() if row.corpus == corpus]
    return [row for row in rows if row.objective == "human" or (row.decoding, row.penalty) in decodings]


def choose_beta(
    model: Any,
    form: Format,
    pairs: Sequence[Pair],
    betas: Sequence[float] = BETAS,
    beam: Beam = BEAM,
    progress: Done | None = None,
    **writing: Any,
) -> Choice:
    """The length normalisation β with the best summaries of the validation `pairs`; `writing`: see `summarize`."""
    scores = {}
    for number, beta in enumerate(betas):
        part = None
        if progress:
            part = lambda done, total, number=number: progress(number * total + done, len(betas) * total)  # noqa: E731
        texts = summarize(model, form, pairs, replace(beam, gnmt=beta), progress=part, **writing)
        scores[beta] = mean_rouge(texts, pairs)
    return best(scores)


def best(scores: Mapping[float, float]) -> Choice:
    """The value with the highest score; of equal ones the smallest.

    >>> best({1.0: 20.0, 0.5: 21.0, 2.0: 21.0}).value
    0.5
    """
    if not scores:
        raise ValueError("scores must hold at least one value; there is none")
    value = min(scores, key=lambda candidate: (-scores[candidate], candidate))
    return Choice(value, scores[value], dict(scores))


def samples(texts: Sequence[str], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A record for each summary: its article is the prefix, itself the continuation."""
    return [
        {"id": pair.id, "prefix": pair.text, "references": list(pair.references), "continuation": text}
        for text, pair in zip(texts, pairs, strict=True)
    ]


def _parts(about: Mapping[str, Any], validation: Sequence[Pair], how: Evaluation) -> list[_Part]:
    """The beam, then the other strategies."""
    others = [parse(text) for text in how.strategies]
    if how.beam in others:
        raise ValueError(f"strategies: {how.beam} is the beam search itself; set its β by betas ({how.betas})")
    decides = {name: value for name, value in asdict(how).items() if name in DECIDES} | {"decoding_seed": how.seed}
    parts = []
    for strategy in (how.beam, *others):
        settings = {**about, "decoding": strategy.decoding, "penalty": strategy.penalty, **decides}
        betas = how.betas if strategy == how.beam else ()
        if betas:
            settings |= {"betas": betas, "validation": checksum(validation) if len(betas) > 1 else None}
        parts.append(_Part(strategy, betas, settings))
    return parts


def _measure(
    run: Run,
    model: Any,
    form: Format,
    part: _Part,
    validation: Sequence[Pair],
    test: Sequence[Pair],
    how: Evaluation,
    progress: Progress | None,
) -> None:
    """Choose the strategy's β, decode the test set and score it: rows, summaries and a line for the run's folder."""
    writing: dict[str, Any] = {
        "min_new_tokens": how.min_new_tokens,
        "new_tokens": how.new_tokens,
        "source_seen": run.config["source_seen"],
        "seed": how.seed,
        "batch": how.batch,
    }
    strategy, choice, figures = part.strategy, dict[str, Any](), dict[str, Any]()
    if part.betas:
        choice = _choice(model, form, part.betas, how.beam, validation, progress, writing)
        strategy, figures["beta"] = replace(how.beam, gnmt=choice["beta"]), choice["beta"]
    began = time.perf_counter()
    texts = summarize(model, form, test, strategy, progress=bind(progress, str(part.strategy)), **writing)
    seconds = round(time.perf_counter() - began, 2)
    figures |= score(texts, test, mover=how.mover, device=str(model.device))
    system = {**run.about(), **{name: part.settings[name] for name in ("corpus", "decoding", "penalty")}}
    run.save(_samples_file(part.settings["corpus"], part.strategy), samples(texts, test))
    rows = rows_of(figures, **system, split=TEST)
    if "validation_scores" in choice:
        score_there = {"value": max(choice["validation_scores"].values()), "n": len(validation)}
        rows += rows_of({CHOICE: score_there}, **system, split=VALIDATION)
    run.add(
        rows,
        part.settings,
        strategy=str(strategy),
        seconds=seconds,
        checkpoint_rule=CHECKPOINT_RULE,
        notes=_notes(form, test, how),
        **({"length_normalisation": choice} if choice else {}),
    )


def _choice(
    model: Any,
    form: Format,
    betas: Sequence[float],
    beam: Beam,
    validation: Sequence[Pair],
    progress: Progress | None,
    writing: Mapping[str, Any],
) -> dict[str, Any]:
    """β, by which rule, and from which scores."""
    if len(betas) == 1:
        return {"beta": betas[0], "rule": "set"}
    choice = choose_beta(model, form, validation, betas, beam, bind(progress, "choosing β"), **writing)
    scores = {str(beta): value for beta, value in choice.scores.items()}
    return {"beta": choice.value, "rule": DECODING_RULE, "pairs": len(validation), "validation_scores": scores}


def _samples_file(corpus: str, strategy: object) -> str:
    return f"samples/{samples_name(corpus, TEST, strategy)}"


def _notes(form: Format, test: Sequence[Pair], how: Evaluation) -> list[str]:
    """What a reader should know of these figures."""
    form.cuts = Cuts()  # each article of the test set once, however often it was decoded
    for pair in test:
        form.source(pair)
    cut = form.cuts.sentence({"articles": form.limits()["articles"]})
    return ([f"{cut}."] if cut else []) + ([MOVER_NOTE] if how.mover else [])
