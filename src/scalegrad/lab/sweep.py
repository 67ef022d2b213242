"""Grids of γ and α with seeds: runs that go on where they stopped, in parallel over GPUs, and a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scalegrad.lab.jobs import Job, Scoring, run_jobs
from scalegrad.lab.recommendation import Recommendation, recommend
from scalegrad.objectives import Objective
from scalegrad.results.comparison import Comparison, compare_runs, plots, write_page
from scalegrad.results.comparison.sensitivity import sensitivity_plots
from scalegrad.results.comparison.terminal import markdown
from scalegrad.results.figure import save_figure
from scalegrad.runs import check_writable_folder, write_json, write_text
from scalegrad.runs.progress import Progress
from scalegrad.tasks.open_ended.corpora import find_corpus
from scalegrad.tasks.open_ended.evaluation import check_limits
from scalegrad.tasks.open_ended.training import TrainConfig

GAMMAS = tuple(round(0.1 * i, 1) for i in range(1, 10))  # the paper's grid, and unlikelihood's two beside it
ALPHAS = (0.5, 1.0)

_RESULTS = {"figures": "sweep.json", "page": "report.html", "table": "table.md", "plots": "plots"}


@dataclass(frozen=True)
class Sweep:
    """What to try: MLE, each γ and each α, for `seeds` seeds, trained as `config` says and scored on `corpus`.

    `config`'s objective is what varies; its seed is the first. The MLE model is also decoded under a penalty of every
    γ. `chunks`, `prefixes` and `new_tokens` as for `evaluate`. Score on validation text: the test set is for the end.
    """

    config: TrainConfig
    gammas: tuple[float, ...] = GAMMAS
    alphas: tuple[float, ...] = ALPHAS
    seeds: int = 3
    corpus: str = "wikitext-103:valid"
    chunks: int | None = None
    prefixes: int | None = None
    new_tokens: int = 100

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, not {self.seeds}")
        if self.chunks is not None and self.chunks < 1:
            raise ValueError(f"chunks must be at least 1, not {self.chunks}: the budget is of perplexity")
        check_limits(self.chunks, self.prefixes, self.new_tokens)
        if not self.gammas:
            raise ValueError("gammas is empty; expected at least one γ in (0, 1]")
        for values in (self.gammas, self.alphas):
            if len(set(values)) < len(values):
                raise ValueError(f"a strength is named twice in {', '.join(f'{value:g}' for value in values)}")
        self.jobs()  # every strength is one its objective takes

    def jobs(self) -> list[Job]:
        """All runs, a whole grid for each seed: stopped in the middle, the curve is there already.

        >>> [job.name for job in Sweep(TrainConfig("base", ("text",)), (0.2,), (1.0,), seeds=1).jobs()]
        ['mle-seed-0', 'ul-1.0-seed-0', 'sg-0.2-seed-0']
        """
        objectives = [
            Objective("mle"),
            *(Objective("ul", alpha) for alpha in self.alphas),
            *(Objective("sg", gamma) for gamma in self.gammas),
        ]
        first = self.config.settings.seed
        return [self._job(o, seed) for seed in range(first, first + self.seeds) for o in objectives]

    def _job(self, objective: Objective, seed: int) -> Job:
        """Decoded greedily; MLE also under every penalty, the decoding-time curve."""
        penalties = [f"greedy,gamma={gamma}" for gamma in self.gammas] if objective.name == "mle" else []
        scoring = Scoring(self.corpus, ("greedy", *penalties), self.chunks, self.prefixes, self.new_tokens)
        settings = replace(self.config.settings, seed=seed)
        return Job(replace(self.config, objective=objective, settings=settings), (scoring,))


@dataclass(frozen=True)
class Swept:
    """What a sweep found."""

    comparison: Comparison
    recommendation: Recommendation

    def as_dict(self) -> dict[str, Any]:
        """Rows and recommendation as plain JSON values."""
        return {
            "corpus": self.comparison.corpus,
            "recommendation": asdict(self.recommendation),
            "rows": [row.as_dict() for row in self.comparison.systems],
            "notes": list(self.comparison.notes),
        }


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    *,
    budget: float = 0.05,
    devices: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Swept:
    """Train and score what is not there yet in the folder `out`, and say which γ to take.

    `devices` are names for CUDA_VISIBLE_DEVICES, a process each; by default every GPU where there are several, else
    everything happens in this process. Stopped at any moment, the same call goes on; `overwrite` starts every run
    anew.
    """
    folder = check_writable_folder(out, "out")
    corpus = find_corpus(sweep.corpus)
    runs = run_jobs(sweep.jobs(), folder, devices=devices, overwrite=overwrite, progress=progress)
    comparison = compare_runs(runs, corpus.name)
    found = recommend(comparison, budget)
    return Swept(replace(comparison, chosen=found.spoken_of), found)


def write_results(found: Swept, out: str | Path) -> dict[str, Path]:
    """Write sweep.json, report.html, table.md and plots/ into the folder of the sweep; where each of them is."""
    folder = Path(out)
    paths = {name: folder / file for name, file in _RESULTS.items()}
    extra, said = sensitivity_plots(found.comparison), [found.recommendation.sentence]
    write_json(paths["figures"], found.as_dict())
    write_text(paths["table"], markdown(found.comparison, said))
    write_page(found.comparison, paths["page"], extra, said=said)
    check_writable_folder(paths["plots"], "plots")
    for plot in (*extra, *plots(found.comparison)):
        save_figure(plot.figure, paths["plots"] / f"{plot.name}.png")
    return paths
