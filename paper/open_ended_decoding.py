"""The models of the main table decoded in other ways, and their repetition by the length of what they write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paper.lengths import Lengths, limited
from paper.open_ended import WIKITEXT, compared, outcome, scored, scoring_of, systems_of
from paper.open_ended_scale import MAIN, TEST, Scale, scale_of
from paper.outcome import Experiment, NotGiven, Outcome, Setup, Shown
from paper.rows import by_length, with_metrics
from scalegrad.lab.jobs import Job as Training
from scalegrad.lab.jobs import Scoring
from scalegrad.results.comparison import Comparison, Plot
from scalegrad.results.figure import PALETTE, SIZE, grid, legend, new_figure, style_axes
from scalegrad.tasks.open_ended.corpora import find_corpus

_TEXTS = ("rep_1", "rep_2", "rep_3", "uniq_w")
_BY_LENGTH = (MAIN[0], MAIN[2])


# ---- decoding --------------------------------------------------------------------------------------------------------


def _study_of(scale: Scale) -> Scoring:
    """Every decoding on the test text, of as many prefixes as the scale says."""
    study = scoring_of(scale, TEST, scale.decodings)
    if scale.decoding_prefixes is None:
        return study
    return replace(study, prefixes=scale.decoding_prefixes, chunks=0, name=_limited(scale.decoding_prefixes))


def _limited(prefixes: int | None) -> str:
    return limited(find_corpus(TEST), prefixes).name


def decoding_trainings(setup: Setup) -> list[Training]:
    """Each objective, first seed, decoded in every way."""
    scale = scale_of(setup)
    predicted = replace(scoring_of(scale, TEST, ()), prefixes=0)
    return [scale.job(objective, 0, predicted, _study_of(scale)) for objective in MAIN]


def decoding(setup: Setup) -> Outcome:
    """Greedy search, beams and sampling for each objective, first seed: table 17, and its extract, table 7."""
    scale, systems = scale_of(setup), [*systems_of(MAIN), ("human", None)]
    corpus = _limited(scale.decoding_prefixes)
    runs, rows = scored(setup, corpus, "test")
    both = [*rows, *(scored(setup, WIKITEXT, "test")[1] if corpus != WIKITEXT else ())]
    first = [r for r in both if (r.objective, r.strength) in systems and r.seed in (None, 0) and r.penalty is None]
    texts = [r for r in first if r.corpus == corpus and r.metric in _TEXTS and r.decoding in (None, *scale.decodings)]
    ppl = [row for row in first if row.metric == "ppl"]
    # The perplexity does not depend on the decoding; as in the paper's table it stands in every row.
    beside = [
        replace(row, corpus=corpus, decoding=decoding, window=None, new_tokens=scale.new_tokens)
        for decoding in scale.decodings for row in ppl
    ]  # fmt: skip
    shown, behind = compared(with_metrics([*texts, *beside], ("ppl", *_TEXTS)), runs, 17)
    return outcome([Shown("Decoding strategies", shown)], [], runs, behind)


# ---- lengths ---------------------------------------------------------------------------------------------------------


def length_trainings(setup: Setup) -> list[Training]:
    """MLE and SG with all seeds, at every length."""
    scale = scale_of(setup)
    return scale.each_seed(_BY_LENGTH, Lengths(TEST, scale.lengths, scale.length_prefixes))


def lengths(setup: Setup) -> Outcome:
    """Rep-1 against the length of the continuation, MLE and SG with all seeds, people at each length."""
    scale = scale_of(setup)
    runs, rows = scored(setup, _limited(scale.length_prefixes), "test")
    rows = [row for row in rows if row.metric == "rep_1" and row.new_tokens in scale.lengths]
    rows = [row for row in rows if row.decoding in (None, "greedy") and row.penalty is None]
    if len({(row.objective, row.strength) for row in rows}) < len(_BY_LENGTH) + 1:
        raise NotGiven("no runs of MLE and ScaleGrad have figures by length yet")
    shown, _ = compared(by_length(rows), runs)
    note = "The paper prints a picture, no numbers: SG is below MLE at every length."
    shown = replace(shown, notes=[*shown.notes, note])
    table = Shown("Rep-1 by the length of the continuation", shown)
    return outcome([table], [_length_plot(shown, scale.lengths)], runs, rows)


def _length_plot(comparison: Comparison, lengths: Sequence[int]) -> Plot:
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    for system in comparison.systems:
        names = [f"rep_1_at_{length}" for length in lengths]
        human = system.kind == "human"
        axes.errorbar(
            lengths, [system.figures[name] for name in names],
            yerr=[system.deviations[name] for name in names] if system.deviations else None,
            color=PALETTE[system.objective], linestyle=(0, (4, 2)) if human else "-", marker="o",
            markersize=4, linewidth=1.8, label=system.label,
        )  # fmt: skip
    style_axes(axes, title="Repetition by length", x="tokens of the continuation", y="Rep-1")
    grid(axes, "y")
    legend(figure)
    return Plot("lengths", "Rep-1 of greedy continuations. Bars: deviation over seeds.", figure)


EXPERIMENTS = (
    Experiment(
        "decoding", "Decoding strategies for auto-completion", ("table 7", "table 17"), decoding, decoding_trainings
    ),
    Experiment("lengths", "Repetition by the length of the continuation", ("figure 2",), lengths, length_trainings),
)
