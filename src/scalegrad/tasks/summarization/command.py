"""`scalegrad summarize`: train a summariser with each objective, evaluate it, and summarise what users bring."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from scalegrad import objectives
from scalegrad.counts import counted
from scalegrad.decoding.strategies import check_new_tokens, parse
from scalegrad.extras import need
from scalegrad.models.pretrained import Loading, find_place, is_run
from scalegrad.objectives import Objective
from scalegrad.options import FLAT, AsJson, Batch, Html, Model, Overwrite, SkipBad, Stream, option, several
from scalegrad.runs.terminal import bars, plain_warnings, quiet_transformers, status
from scalegrad.tasks.summarization.config import STOCHASTIC, Evaluation, Task
from scalegrad.tasks.summarization.recipes import RECIPES, Recipe

if TYPE_CHECKING:
    from scalegrad.runs import Row, Run
    from scalegrad.runs.progress import Progress

app = App(
    name="summarize",
    help="Summarise: train with MLE, UL or ScaleGrad, evaluate, write summaries.\n\n"
    "Example: scalegrad summarize train --recipe small --limit 200 --out runs/tldr",
)

PAPER_OBJECTIVES = tuple(objectives.parse(text) for text in ("mle", "ul=0.5", "sg=0.8"))
_TASK, _EVALUATION, _LOADING = Task(), Evaluation(), Loading()


@app.command(sort_key=1)
def train(
    task: Annotated[Task, FLAT] = _TASK,
    *,
    out: Annotated[Path, option(help="Folder of the runs, one for each objective.")],
    objective: Annotated[tuple[Objective, ...], several(objectives.parse)] = PAPER_OBJECTIVES,
    recipe: Annotated[
        str | None, option(help="paper, abstracts, small or finetune (default: by model and machine).")
    ] = None,
    max_steps: Annotated[
        int | None, option(help="Training steps of the model that writes (default: the recipe's).")
    ] = None,
    seed: Annotated[int, option(help="Seed of new weights, the order of the data and dropout.")] = 0,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a summariser with each objective: for a BERT, sentence selection first, then writing.

    Stopped at any moment, the same command goes on where it was.

    Example: scalegrad summarize train --recipe small --limit 200 -o mle -o sg=0.8 --out runs/tldr

    Parameters
    ----------
    objective
        mle, ul=α or sg=γ. May be repeated.
    """
    from scalegrad.data import Problems
    from scalegrad.tasks.summarization.corpora import check_data

    if recipe is not None and recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}")
    check_data(task.data)
    find_place(task.model)
    for module in ("transformers", "accelerate"):
        need(module, extra="summarize")
    quiet_transformers()
    from scalegrad.tasks.summarization.training import train as train_all
    from scalegrad.training import Reporter

    problems = Problems(skip_bad)
    task = replace(task, recipe=_recipe(recipe, task.model, seed, max_steps))
    with plain_warnings(), bars() as progress:
        fitted = train_all(
            task,
            objective,
            out,
            overwrite=overwrite,
            callbacks=lambda stage: [Reporter(progress, stage)],
            problems=problems,
            progress=progress,
        )
    problems.report()
    if as_json:
        print(json.dumps([{"run": str(one.run.path), **one.run.load("done")} for one in fitted]))
        return
    for one in fitted:
        print(
            f"{one.run.path}: step {one.selected_step:,} of {one.steps:,}, validation perplexity "
            f"{one.validation_ppl or float('nan'):.2f} ({one.seconds:.0f} s)"
        )
    print(f"Score them with: scalegrad summarize evaluate {out}")


@app.command(sort_key=2)
def evaluate(
    *folder: Path,
    data: Annotated[str | None, option(help="Other data than the runs were trained on.")] = None,
    evaluation: Annotated[Evaluation, FLAT] = _EVALUATION,
    stochastic: Annotated[bool, option(help="Also top-p .3/.9 and top-k 40/100, as in the paper.")] = False,
    limit: Annotated[int | None, option(help="Use only the first N test pairs, and as many to choose β by.")] = None,
    skip_bad: SkipBad = False,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Choose β on the validation set, decode the test set with beam 5, and score: ROUGE, MoverScore, Rep-n, novelty.

    Example: scalegrad summarize evaluate runs/tldr --limit 100 --html report.html

    Parameters
    ----------
    folder
        Runs, or folders that hold runs.
    """
    from scalegrad.data import Problems
    from scalegrad.tasks.summarization.corpora import check_data, load_split

    if data is not None:
        check_data(data)
    if not folder:
        raise ValueError("FOLDER is missing; expected a run, or a folder that holds runs")
    for path in folder:
        if not path.exists():
            raise FileNotFoundError(f"folder: there is no {path}")
    need("transformers", extra="summarize")
    quiet_transformers()
    from rich.console import Console

    from scalegrad.results.comparison import write_page
    from scalegrad.results.comparison.terminal import print_comparison
    from scalegrad.tasks.summarization.evaluation import evaluate_run
    from scalegrad.tasks.summarization.report import compare_summaries

    runs = _runs(folder)
    evaluation = replace(evaluation, strategies=(*evaluation.strategies, *(STOCHASTIC if stochastic else ())))
    rows: list[Row] = []
    scored: dict[str, list[Run]] = {}
    problems = Problems(skip_bad)
    with plain_warnings(), bars() as progress:
        pairs = cache(lambda name, split: load_split(name, split, limit, problems=problems, progress=progress))
        for run in runs:
            name = data or run.config["data"]["name"]
            how = Evaluation.of(run.config["recipe"], **vars(evaluation))
            validation, test = pairs(name, "validation"), pairs(name, "test")
            corpus = Path(name).name
            rows += evaluate_run(run, corpus, validation, test, how, _of(run, progress))
            scored.setdefault(corpus, []).append(run)
    problems.report()
    notes: list[str] = []
    for name, runs_there in sorted(scored.items()):
        comparison = compare_summaries(runs_there, name)
        notes += comparison.notes
        if not as_json:
            print_comparison(comparison, Console())
        if html is not None:
            path = html if len(scored) == 1 else html.with_stem(f"{html.stem}-{name}")
            write_page(comparison, path)
            print(f"In {path}", file=sys.stderr)
    if as_json:
        print(json.dumps({"rows": [row.as_dict() for row in rows], "notes": notes}, ensure_ascii=False, indent=2))


@dataclass(frozen=True)
class Writing:
    """What to summarise, and how."""

    model: Model
    file: Stream
    """.txt, .story, .jsonl or .csv (also .gz, .xz), a folder, or - for JSONL on standard input."""
    _: KW_ONLY
    out: Stream = "-"
    """JSONL file to write, or - for standard output."""
    strategy: str = "beam=5,gnmt=1.0,block_words=3"
    """How to decode, such as greedy or top_p=0.9."""
    min_new_tokens: int = 0
    """Generate at least this many tokens."""
    new_tokens: int = 140
    """Generate at most this many tokens."""
    template: str | None = None
    """A causal LM's prompt, with {article} where the article goes (default: a run's own)."""
    seed: int = 0
    """Seed of sampled summaries."""
    batch: Batch = None
    """Articles at a time, or auto: what fits into memory."""

    def __post_init__(self) -> None:
        parse(self.strategy)
        check_new_tokens(self.min_new_tokens, self.new_tokens)


@app.command(sort_key=3)
def write(
    writing: Annotated[Writing, FLAT],
    *,
    loading: Annotated[Loading, FLAT] = _LOADING,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Summarise every article of FILE, to a JSON line each.

    Example: scalegrad summarize write runs/tldr/sg-0.8-seed-0 article.txt
    """
    if as_json and writing.out == "-":
        raise ValueError("--json reports on standard output, where the summaries go: give --out FILE")
    from scalegrad.data import Problems, read_pairs

    problems = Problems(skip_bad)
    pairs = read_pairs(writing.file, summaries=False, problems=problems)
    problems.report()
    find_place(writing.model)
    need("transformers", extra="summarize")
    quiet_transformers()
    from scalegrad.runs.atomic import line, write_lines
    from scalegrad.runs.progress import bind
    from scalegrad.tasks.summarization.formats import format_for
    from scalegrad.tasks.summarization.models import load_summarizer
    from scalegrad.tasks.summarization.writing import summarize

    with status(f"loading {writing.model}"):
        network, tokenizer = load_summarizer(writing.model, loading.device, loading.dtype, loading.trust_remote_code)
    form = format_for(network, tokenizer, template=writing.template or _template_of(writing.model))
    with bars() as progress:
        texts = summarize(
            network,
            form,
            pairs,
            writing.strategy,
            new_tokens=writing.new_tokens,
            min_new_tokens=writing.min_new_tokens,
            seed=writing.seed,
            batch=writing.batch,
            progress=bind(progress, "summarising"),
        )
    lines = [{"id": pair.id, "summary": text} for pair, text in zip(pairs, texts, strict=True)]
    if writing.out == "-":
        sys.stdout.write("".join(line(entry) for entry in lines))
    else:
        write_lines(writing.out, lines)
    cut = form.cuts.sentence({"articles": form.limits()["articles"]})
    _tell(len(pairs), cut, writing.out, as_json)


def _tell(summarised: int, cut: str | None, out: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"out": out, "summarised": summarised, "cut": cut}))
        return
    parts = [counted(summarised, "summary", "summaries") + ("" if out == "-" else f" in {out}")]
    print("; ".join(parts + ([cut] if cut else [])), file=sys.stderr)


def _recipe(name: str | None, model: str, seed: int, max_steps: int | None) -> Recipe:
    """The recipe by its name; without one, what suits the model and the machine."""
    import torch

    from scalegrad.tasks.summarization.models import is_bert

    if name is None:
        name = "finetune" if not is_bert(model) else "abstracts" if torch.cuda.is_available() else "small"
    recipe = RECIPES[name](seed)
    if max_steps is None:
        return recipe
    return replace(recipe, writer=replace(recipe.writer, max_steps=max_steps, epochs=None, evaluate_every=None))


def _runs(folders: Sequence[Path]) -> list[Run]:
    """The finished summarisation runs in these folders; stage 1 is none to evaluate."""
    from scalegrad.results.frame import find_runs

    runs = [
        run for run in find_runs(folders) if run.config.get("task") == "summarization" and "objective" in run.config
    ]
    if not runs:
        raise ValueError(f"{', '.join(map(str, folders))}: there is no run of scalegrad summarize train")
    return runs


def _template_of(model: str) -> str | None:
    """The template a run was trained with."""
    from scalegrad.runs import Run

    return Run.open(Path(model).expanduser()).config.get("template") if is_run(model) else None


def _of(run: Run, progress: Progress) -> Progress:
    return lambda what, done, total: progress(f"{run.path.name}: {what}", done, total)
