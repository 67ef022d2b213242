"""Summarisation beside the paper: every objective with the beam (table 5), and sampling from MLE (table 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paper.beside_paper import beside_paper, difference_plot, without_texts
from paper.differences import METRICS, minus_mle
from paper.outcome import NotGiven, Outcome, Setup, Shown, with_run_names
from paper.printed import SETTINGS, printed
from paper.rows import beside
from paper.summarization import Plan, difference_rows, jobs_of, runs_of
from paper.summary_plans import PAPER_CORPORA, news_model, plans
from scalegrad.results.comparison import Comparison, Plot, System, compare
from scalegrad.results.comparison.strengths import choose_strengths
from scalegrad.results.frame import frame, run_rows
from scalegrad.runs import Job, Row, Run
from scalegrad.tasks.summarization.evaluation import CHOICE

TITLES = {
    "scitldr": "BertSum on the abstracts of SciTLDR",
    "news": "A causal LM on CNN/DM news",
    "cnn/dm": "BertSum on CNN/DM",
    "nyt50": "BertSum on NYT50",
}
ON_PAGE = 3  # articles to read summaries of
_GAINS = ("rouge_1", "rouge_2", "rouge_l", "moverscore_1", "rep_1", "rep_2")


@dataclass(frozen=True)
class Scored:
    """The runs of a plan with their rows, and what they gain over MLE."""

    plan: Plan
    runs: list[Run]
    rows: list[Row]

    @property
    def name(self) -> str:
        """For files."""
        return folder_name(self.plan)

    @property
    def title(self) -> str:
        """For a table: corpus, model and size."""
        texts = next(row.n for row in self.rows if row.metric == "rouge_1" and row.corpus == self.plan.corpus)
        return f"{TITLES[self.plan.corpus]}, {texts:,} test texts"

    def of_test(self, metrics: Sequence[str]) -> list[Row]:
        """Rows of the test set."""
        return [row for row in self.rows if row.split == "test" and row.metric in metrics]


def jobs(setup: Setup) -> list[Job]:
    """What can be run now for every plan of the scale."""
    return [job for plan, folder in _plans(setup) for job in jobs_of(plan, folder)]


def summarization(setup: Setup) -> Outcome:
    """Table 5: ROUGE and MoverScore of each objective with beam 5, β, α and γ chosen on the validation set."""
    tables, plots, rows, scored = [], list[Plot | None](), list[Row](), scores(setup)
    for one in scored:
        corpus, beam = one.plan.corpus, one.plan.how.beam.decoding
        own = [row for row in one.of_test(METRICS) if row.decoding in (None, beam)]
        paper = _paper_rows(corpus)
        shown = compare(frame([*own, *paper]), runs=one.runs)
        first = frame(row for row in one.rows if row.metric == CHOICE and row.seed == 0)
        shown = choose_strengths(shown, first, CHOICE)
        tables.append(Shown(one.title, _with_few_texts(shown, corpus)))
        gains = [row for row in one.rows if row.metric in map(minus_mle, _GAINS)]
        against = compare(frame(gains)) if gains else Comparison([])
        plots.append(difference_plot(against, _GAINS, f"{one.name}-gains", f"{TITLES[corpus]}: against MLE"))
        rows += [*one.rows, *paper]
    return _outcome(setup, scored, tables, plots, rows)


def summarization_decoding(setup: Setup) -> Outcome:
    """Table 8: the MLE model sampled with top-p and top-k, against its beam search."""
    tables, plots, rows, scored = [], list[Plot | None](), list[Row](), scores(setup)
    for one in scored:
        corpus = one.plan.corpus
        own = [row for row in one.of_test(METRICS) if row.objective in ("mle", "human")]
        paper = beside(printed(8), corpus, "test")
        mle = [run for run in one.runs if run.config["objective"] == "mle"]
        shown = without_texts(compare(frame([*own, *paper]), runs=mle))
        tables.append(Shown(f"{one.title}: the MLE model decoded", shown))
        plots.append(
            beside_paper(shown, "rouge_1", f"{one.name}-decoding", f"{TITLES[corpus]}: decoding the MLE model")
        )
        rows += [*own, *paper]
    return _outcome(setup, scored, tables, plots, rows)


def scores(setup: Setup) -> list[Scored]:
    """The runs of each plan that has an MLE model, with their rows."""
    scored = []
    for plan, folder in _plans(setup):
        runs = runs_of(plan, folder)
        if any(run.config["objective"] == "mle" for run in runs):  # else nothing can be held against MLE
            rows = [row for run in runs for row in run_rows(run) if row.corpus == plan.corpus]
            scored.append(Scored(plan, runs, [*rows, *difference_rows(plan, folder)]))
    if not scored:
        raise NotGiven("the MLE model has no summaries yet")
    return scored


def _plans(setup: Setup) -> list[tuple[Plan, Path]]:
    """The plans of the scale, each with the folder of its runs."""
    folder = setup.runs / "summarization"
    if setup.only_done and not folder.is_dir():
        raise NotGiven("no summaries were written yet")
    folder.mkdir(parents=True, exist_ok=True)
    return [(plan, folder / folder_name(plan)) for plan in plans(setup, folder)]


def folder_name(plan: Plan) -> str:
    """Of the runs of a plan."""
    return plan.corpus.replace("/", "-")


def _paper_rows(corpus: str) -> list[Row]:
    """The paper's rows of this corpus; beside another one those of CNN/DM, and those of NYT50 as another model's."""
    if corpus in PAPER_CORPORA.values():
        return printed(5, corpus)
    nyt50 = [replace(row, model="NYT50") for row in printed(5, "nyt50")]
    return beside([*printed(5, "cnn/dm"), *nyt50], corpus, "test")


def _with_few_texts(comparison: Comparison, corpus: str) -> Comparison:
    """A few summaries, of articles evenly spread; none of news, which is its publishers' and may not be passed on."""

    def few(system: System) -> System:
        samples = list(system.samples) if corpus != "news" and system.kind in ("trained", "human") else []
        places = [len(samples) * place // ON_PAGE for place in range(min(ON_PAGE, len(samples)))]
        read = [replace(samples[at], prefix=" ".join(samples[at].prefix.split()[:80])) for at in places]
        return replace(system, samples=read)

    systems = [
        replace(few(s), suffix=f"{s.suffix} (NYT50)" if s.model == "NYT50" else s.suffix) for s in comparison.systems
    ]
    return replace(comparison, systems=systems)


def _outcome(
    setup: Setup, scored: Sequence[Scored], tables: Sequence[Shown], plots: Sequence[Plot | None], rows: Sequence[Row]
) -> Outcome:
    rows = with_run_names(rows, [run for one in scored for run in one.runs])
    drawn = [plot for plot in plots if plot is not None]
    return Outcome(tables, drawn, _about_scale(setup, scored), _made(scored), rows)


def _about_scale(setup: Setup, scored: Sequence[Scored]) -> list[str]:
    sentences = {
        "smoke": "Ten steps on sixteen abstracts of SciTLDR, from a small BERT of random weights.",
        "gpu": "SciTLDR has 1,992 abstracts to train on, CNN/DM 287,227 articles, and the encoder is a fifth of "
        "BERT-base: compare the order and the gaps, not the values.",
        "paper": "The paper's model, corpora and hyper-parameters; α, γ and β are the paper's choice.",
    }
    notes, corpora = [sentences[setup.scale]], [one.plan.corpus for one in scored]
    if setup.scale == "gpu" and "news" not in corpora:
        notes.append("The table of news needs a causal LM (--model) and CNN/DM pairs (--data news=FOLDER).")
    if setup.scale == "paper":
        for one in scored:
            wanted, there = SETTINGS[one.plan.corpus]["sizes"]["test"], len(one.plan.test())
            if there != wanted:
                notes.append(f"{TITLES[one.plan.corpus]}: {there:,} test texts and not the paper's {wanted:,}.")
        if "nyt50" not in corpora:
            notes.append("NYT50 is licensed and on no hub: its tables need its folder (--data nyt50=FOLDER).")
    elif setup.model is not None and news_model(setup) == setup.model and "news" not in corpora:
        notes.append(f"{setup.model} is no BERT, so BertSum began with the scale's own encoder.")
    return notes


def _made(scored: Sequence[Scored]) -> dict[str, Any]:
    """How the figures came about, for each corpus: the settings once, and a line for each run."""
    made = {}
    for one in scored:
        start = one.runs[0].load("environment")["starts"][-1]
        config = one.runs[0].config
        made[one.plan.corpus] = {
            "model": Path(str(config["model"])).name,
            "recipe": {key: value for key, value in config["recipe"].items() if key != "seed"},
            "trained_on": {key: start[key] for key in ("hardware", "versions", "started")},
            "runs": {run.path.name: _run_line(run.load("done"), run.rows()) for run in one.runs},
        }
    return made


def _run_line(done: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """What came of a run, in a line: its step, its perplexity, what it took, and its β."""
    took = f"{done['seconds']:.0f} s" + (f", {done['peak_memory_mib']:,.0f} MiB" if done.get("peak_memory_mib") else "")
    ppl = done.get("validation_ppl") or float("nan")
    beta = next((row.value for row in rows if row.metric == "beta"), 0.0)
    return f"step {done['selected_step']} of {done['steps']}, validation perplexity {ppl:.2f}, {took}; β={beta:g}"
