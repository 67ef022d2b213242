"""Grids of γ and α with seeds: runs that go on where they stopped, in parallel over GPUs, and a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from scalegrad.objectives import Objective
from scalegrad.options import FLAT, NUMBERS, parsed
from scalegrad.runs import check_writable_folder, write_json, write_lines, write_text
from scalegrad.tasks.open_ended.config import Training, check_limits

if TYPE_CHECKING:
    from scalegrad.lab.jobs import Job
    from scalegrad.lab.recommendation import Recommendation
    from scalegrad.results.comparison import Comparison
    from scalegrad.runs.jobs import Progress

GAMMAS = tuple(round(0.1 * i, 1) for i in range(1, 10))  # the paper's grid, and unlikelihood's two beside it
ALPHAS = (0.5, 1.0)

_RESULTS = {
    "rows": "results.jsonl",
    "recommendation": "recommendation.json",
    "page": "report.html",
    "table": "table.md",
    "plots": "plots",
}


def read_budget(text: str) -> float:
    """0.05 of "5%" or "0.05".

    >>> read_budget("5%"), read_budget("0.1")
    (0.05, 0.1)
    """
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError(f"expected a share of MLE's perplexity, such as 5% or 0.05, not {text!r}") from None


@dataclass(frozen=True)
class Sweep:
    """What to try: MLE, each γ and each α, for `seeds` seeds, trained as `config` says and scored on `corpus`.

    The seed of `config` is the first. The MLE model is also decoded under a penalty of every γ. Score on validation
    text: the test set is for the end.
    """

    config: Annotated[Training, FLAT]
    _: KW_ONLY
    gamma: Annotated[tuple[float, ...], NUMBERS] = GAMMAS
    """Values of ScaleGrad's γ to try, with commas."""
    alpha: Annotated[tuple[float, ...], NUMBERS] = ALPHAS
    """Values of unlikelihood's α to try, with commas, or none."""
    seeds: int = 3
    """Runs of each setting, with seeds from --seed on."""
    budget: Annotated[float, parsed(read_budget, metavar="SHARE", show_default="5%")] = 0.05
    """What the γ to take may cost at most, as a share of MLE's perplexity: 5% or 0.05."""
    corpus: str = "wikitext-103:valid"
    """What to score on: wikitext-103, wikitext-103:valid, ptb:PATH, imdb:PATH or a file."""
    chunks: int | None = None
    """Chunks to predict, evenly spread (default: all)."""
    prefixes: int | None = 120
    """Prefixes to continue, evenly spread; 0: perplexity alone."""
    new_tokens: int = 100
    """Tokens to generate after each prefix."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, not {self.seeds}")
        if self.chunks is not None and self.chunks < 1:
            raise ValueError(f"chunks must be at least 1, not {self.chunks}: the budget is of perplexity")
        check_limits(self.chunks, self.prefixes, self.new_tokens)
        if not 0 <= self.budget < float("inf"):
            raise ValueError(f"budget must be a share of MLE's perplexity from 0, such as 0.05, not {self.budget}")
        if not self.gamma:
            raise ValueError("gamma is empty; expected at least one γ in (0, 1]")
        for values in (self.gamma, self.alpha):
            if len(set(values)) < len(values):
                raise ValueError(f"a strength is named twice in {', '.join(f'{value:g}' for value in values)}")
        self.objectives()  # every strength is one its objective takes

    def objectives(self) -> list[Objective]:
        """MLE, then each α and each γ."""
        grid = (("ul", self.alpha), ("sg", self.gamma))
        return [Objective("mle"), *(Objective(name, strength) for name, values in grid for strength in values)]

    def jobs(self) -> list[Job]:
        """All runs, a whole grid for each seed: stopped in the middle, the curve is there already.

        >>> [job.name for job in Sweep(Training("base", ("text",)), gamma=(0.2,), alpha=(1.0,), seeds=1).jobs()]
        ['mle-seed-0', 'ul-1.0-seed-0', 'sg-0.2-seed-0']
        """
        first = self.config.settings.seed
        seeds = range(first, first + self.seeds)
        return [self._job(objective, seed) for seed in seeds for objective in self.objectives()]

    def _job(self, objective: Objective, seed: int) -> Job:
        """Decoded greedily; MLE also under every penalty, the decoding-time curve."""
        from scalegrad.decoding import Greedy
        from scalegrad.lab.jobs import Job, Scoring

        penalties = [str(Greedy(gamma=gamma)) for gamma in self.gamma] if objective.name == "mle" else []
        strategies = tuple(dict.fromkeys(("greedy", *penalties)))
        scoring = Scoring(self.corpus, strategies, self.chunks, self.prefixes, self.new_tokens)
        return Job(self.config.run(objective, seed), (scoring,))


@dataclass(frozen=True)
class Swept:
    """What came out of a sweep."""

    comparison: Comparison
    recommendation: Recommendation

    def as_dict(self) -> dict[str, Any]:
        """Rows (means over seeds), recommendation and notes as plain JSON values."""
        return {
            "recommendation": asdict(self.recommendation),
            "rows": [row.as_dict() for row in self.comparison.rows],
            "notes": list(self.comparison.notes),
        }


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    devices: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Swept:
    """Train and score what is not there yet in the folder `out`, and say which γ to take.

    `devices` are names for CUDA_VISIBLE_DEVICES, a process each; by default every GPU where there are several, else
    everything happens in this process. Stopped at any moment, the same call goes on; `overwrite` starts every run
    anew. A run that fails stops no other: JobsFailed is raised when the others are done.
    """
    from scalegrad.lab.jobs import run_jobs
    from scalegrad.lab.recommendation import recommend
    from scalegrad.results.comparison import compare
    from scalegrad.results.frame import load
    from scalegrad.tasks.open_ended.corpora import find_corpus

    folder = check_writable_folder(out, "out")
    corpus = find_corpus(sweep.corpus)
    runs = run_jobs(sweep.jobs(), folder, devices=devices, overwrite=overwrite, progress=progress)
    comparison = compare(load([run.path for run in runs]), corpus.name, corpus.split, runs=runs)
    recommendation = recommend(comparison, sweep.budget)
    trained = comparison.of_kind("trained")
    chosen = next(s for s in trained if (s.objective, s.level) == ("sg", recommendation.spoken_of))
    return Swept(replace(comparison, chosen=chosen), recommendation)


def write_results(swept: Swept, out: str | Path) -> dict[str, Path]:
    """Write the rows, the recommendation, page, table and plots into the folder of the sweep; where each of them is."""
    from scalegrad.results.comparison import plots, write_page
    from scalegrad.results.comparison.sensitivity import sensitivity_plots
    from scalegrad.results.comparison.terminal import markdown
    from scalegrad.results.figure import save_figure

    paths = {name: Path(out) / file for name, file in _RESULTS.items()}
    comparison = swept.comparison
    extra, said = sensitivity_plots(comparison), [swept.recommendation.sentence]
    write_lines(paths["rows"], [row.as_dict() for row in comparison.rows])
    write_json(paths["recommendation"], asdict(swept.recommendation))
    write_text(paths["table"], markdown(comparison, said))
    write_page(comparison, paths["page"], extra, said=said)
    check_writable_folder(paths["plots"], "plots")
    for plot in (*extra, *plots(comparison)):
        save_figure(plot.figure, paths["plots"] / f"{plot.name}.png")
    return paths
