"""The models of the main table decoded in other ways, and their repetition by the length of what they write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from paper.beside_paper import paper_rows
from paper.lengths import measure_lengths
from paper.open_ended import made_of, scored, scoring_of
from paper.open_ended_scale import MAIN, TEST, Scale, scale_of, trained
from paper.outcome import Experiment, NotGiven, Outcome, Setup, Shown
from scalegrad import objectives
from scalegrad.lab.jobs import Job, Scoring
from scalegrad.results.comparison import Comparison, Plot, System, human_row, merge_seeds
from scalegrad.results.comparison.colours import PALETTE
from scalegrad.results.comparison.picture import SIZE, grid, legend
from scalegrad.results.figure import new_figure, style_axes
from scalegrad.runs import Run
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.corpora import find_corpus

_CORPUS = "wikitext-103 test"
_TEXTS = ("rep_1", "rep_2", "rep_3", "uniq_w")
_BY_LENGTH = (MAIN[0], MAIN[2])


# ---- decoding --------------------------------------------------------------------------------------------------------


def _study_of(scale: Scale) -> Scoring:
    """Every decoding on the test text, of as many prefixes as the scale says."""
    study = scoring_of(scale, TEST, scale.decodings)
    if scale.decoding_prefixes is None:
        return study
    name = f"{_CORPUS}, {scale.decoding_prefixes} prefixes"
    return replace(study, prefixes=scale.decoding_prefixes, chunks=0, name=name)


def decoding_jobs(setup: Setup) -> list[Job]:
    """Each objective, first seed, decoded in every way."""
    scale = scale_of(setup)
    predicted = replace(scoring_of(scale, TEST, ()), prefixes=0)
    return [scale.job(objective, 0, predicted, _study_of(scale)) for objective in reversed(MAIN)]


def decoding(setup: Setup) -> Outcome:
    """Greedy search, beams and sampling for each objective, first seed: table 17, and its extract, table 7."""
    scale = scale_of(setup)
    corpus = _study_of(scale).name or _CORPUS
    runs = scored(scored(trained(setup, decoding_jobs(setup)), _CORPUS), corpus)
    found = [run.load("evaluation")[corpus] for run in runs]
    rows = [row for run, own in zip(runs, found, strict=True) for row in _decoded_rows(run, own, scale.decodings)]
    notes = list(dict.fromkeys(note for own in found for note in own["notes"]))
    paper, compares = paper_rows("decoding", [row.label for row in rows], [own["protocol"] for own in found])
    compared = Comparison([*rows, *human_row(found[0]), *paper], _CORPUS, [*notes, *compares])
    return Outcome([Shown("Decoding strategies", compared)], [], [], made_of(runs, scale))


def _decoded_rows(run: Run, found: dict[str, Any], decodings: Sequence[str]) -> list[System]:
    """A row a decoding, named as the paper's table names them: "SG γ=0.2 beam=3"."""
    objective = str(run.config["objective"])
    parsed = objectives.parse(objective)
    ppl = {"ppl": run.load("evaluation")[_CORPUS]["language_modelling"]["ppl"]}
    return [
        System(
            f"{parsed.label} {name}",
            ppl | {key: found["completion"][name][key] for key in _TEXTS},
            "trained" if name == "greedy" else "decoded",
            parsed.name,
            parsed.value,
        )
        for name in decodings
        if name in found["completion"]
    ]


# ---- lengths ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lengths:
    """Rep-n at each length of continuation, in the run's lengths.json."""

    corpus: str
    lengths: tuple[int, ...]
    prefixes: int | None = None

    def is_done(self, run: Run) -> bool:
        """Whether every length is there, of this text and as many prefixes."""
        if not (run.path / "lengths.json").is_file():
            return False
        corpus = find_corpus(self.corpus)
        found = run.load("lengths").get(corpus.name, {})
        protocol = found.get("protocol", {})
        wanted = min(self.prefixes or protocol.get("all_prefixes", 0), protocol.get("all_prefixes", 0))
        same = protocol.get("corpus_sha256") == corpus.checksum and protocol["prefixes"] == wanted
        return same and all(str(length) in found["model"] for length in self.lengths)

    def measure(self, run: Run, model: Any, tokenizer: Any, *, overwrite: bool, progress: Progress | None) -> None:
        """All lengths at once: they are beginnings of the longest."""
        measure_lengths(run, model, tokenizer, find_corpus(self.corpus), self.lengths, self.prefixes, progress)


def length_jobs(setup: Setup) -> list[Job]:
    """MLE and SG with all seeds, at every length."""
    scale = scale_of(setup)
    return scale.each_seed(_BY_LENGTH, Lengths(TEST, scale.lengths, scale.length_prefixes))


def lengths(setup: Setup) -> Outcome:
    """Rep-1 against the length of the continuation, MLE and SG with all seeds, people at each length."""
    scale = scale_of(setup)
    runs = [run for run in trained(setup, length_jobs(setup)) if (run.path / "lengths.json").is_file()]
    if {run.config["objective"] for run in runs} != set(_BY_LENGTH):
        raise NotGiven("no runs of MLE and ScaleGrad have figures by length yet")
    rows = []
    for objective in _BY_LENGTH:
        own = [run for run in runs if run.config["objective"] == objective]
        found = [run.load("lengths")[_CORPUS]["model"] for run in own]
        parsed = objectives.parse(objective)
        kind = ("trained", parsed.name, parsed.value)
        rows.append(merge_seeds([System(parsed.label, _by_length(one), *kind) for one in found]))
    measured = runs[0].load("lengths")[_CORPUS]
    human = System("Human", _by_length(measured["human"]), "human")
    protocol = measured["protocol"]
    note = (
        f"{protocol['prefixes']:,} of {protocol['all_prefixes']:,} prefixes, each continued once greedily by "
        f"{max(scale.lengths)} tokens; shorter texts are its beginnings. The paper prints a picture, no numbers: SG is "
        "below MLE at every length."
    )
    compared = Comparison([*rows, human], _CORPUS, [note])
    return Outcome(
        [Shown("Rep-1 by the length of the continuation", compared)],
        [_length_plot(compared, scale.lengths)],
        [],
        made_of(runs, scale),
    )


def _by_length(found: dict[str, dict[str, float]]) -> dict[str, float]:
    return {f"rep_1_at_{length}": figures["rep_1"] for length, figures in found.items()}


def _length_plot(comparison: Comparison, lengths: Sequence[int]) -> Plot:
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    for system in comparison.systems:
        names = [f"rep_1_at_{length}" for length in lengths]
        human = system.kind == "human"
        axes.errorbar(
            lengths, [system.figures[name] for name in names],
            yerr=[system.deviations[name] for name in names] if system.deviations else None,
            color=PALETTE["human" if human else system.family], linestyle=(0, (4, 2)) if human else "-", marker="o",
            markersize=4, linewidth=1.8, label=system.label,
        )  # fmt: skip
    style_axes(axes, title="Repetition by length", x="tokens of the continuation", y="Rep-1")
    grid(axes, "y")
    legend(figure)
    return Plot("lengths", "Rep-1 of greedy continuations. Bars: deviation over seeds.", figure)


EXPERIMENTS = (
    Experiment(
        "decoding", "Decoding strategies for auto-completion", ("table 7", "table 17"), decoding, jobs=decoding_jobs
    ),
    Experiment("lengths", "Repetition by the length of the continuation", ("figure 2",), lengths, jobs=length_jobs),
)
