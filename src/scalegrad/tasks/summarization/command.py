"""`scalegrad summarize`: train a summariser with each objective, evaluate it, and summarise what users bring."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from scalegrad import objectives
from scalegrad.counts import counted
from scalegrad.decoding.strategies import check_new_tokens, parse
from scalegrad.extras import need
from scalegrad.models.pretrained import find_place, is_run
from scalegrad.objectives import Objective
from scalegrad.options import FLAT, AsJson, Batch, Html, Loading, Model, Overwrite, Stream, option, several
from scalegrad.runs.terminal import Progress, bars, quiet_transformers, status
from scalegrad.tasks.summarization.config import STOCHASTIC, Evaluation, Task
from scalegrad.tasks.summarization.recipes import RECIPES, Recipe

if TYPE_CHECKING:
    from scalegrad.runs import Run

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
    from scalegrad.tasks.summarization.corpora import check_data

    if recipe is not None and recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}")
    check_data(task.data)
    find_place(task.model)
    for module in ("transformers", "accelerate"):
        need(module, extra="summarize")
    quiet_transformers()
    from scalegrad.tasks.summarization.training import train as train_all
    from scalegrad.training import training_progress

    task = replace(task, recipe=_recipe(recipe, task.model, seed, max_steps))
    with _plain_warnings(), bars() as progress:
        fitted = train_all(
            task,
            objective,
            out,
            overwrite=overwrite,
            callbacks=lambda stage: [training_progress(progress, stage)],
        )
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

    from scalegrad.tasks.summarization.evaluation import evaluate_run
    from scalegrad.tasks.summarization.report import load_sheet, print_sheet, write_page

    runs = _runs(folder)
    evaluation = replace(evaluation, strategies=(*evaluation.strategies, *(STOCHASTIC if stochastic else ())))
    found = {}
    with _plain_warnings(), bars() as progress:
        for run in runs:
            name = data or run.config["data"]["name"]
            test = load_split(name, "test", limit)
            how = Evaluation.of(run.config["recipe"], **vars(evaluation))
            validation = load_split(name, "validation", limit)
            found[str(run.path)] = evaluate_run(run, Path(name).name, validation, test, how, _of(run, progress))
    names = {Path(data or run.config["data"]["name"]).name for run in runs}
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    for name in sorted(names):
        these = [run for run in runs if Path(data or run.config["data"]["name"]).name == name]
        sheet = load_sheet(these, name)
        if not as_json:
            print_sheet(sheet, Console())
        if html is not None:
            path = html if len(names) == 1 else html.with_stem(f"{html.stem}-{name}")
            write_page(sheet, path)
            print(f"In {path}", file=sys.stderr)


@dataclass(frozen=True)
class Writing:
    """What to summarise, and how."""

    model: Model
    file: Path
    """A .txt, .story, .jsonl or .csv file, or a folder of .story."""
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
    as_json: AsJson = False,
) -> None:
    """Summarise every article of FILE, to a JSON line each; one that cannot be read gets a line that says why.

    Example: scalegrad summarize write runs/tldr/sg=0.8 article.txt
    """
    if as_json and writing.out == "-":
        raise ValueError("--json reports on standard output, where the summaries go: give --out FILE")
    from scalegrad.data.pairs import read_records

    records = list(read_records(writing.file, summaries=False))
    if not records:
        raise ValueError(f"{writing.file} is empty: expected at least one article")
    find_place(writing.model)
    need("transformers", extra="summarize")
    quiet_transformers()
    from scalegrad.runs.atomic import line, write_lines
    from scalegrad.tasks.summarization.formats import format_for
    from scalegrad.tasks.summarization.models import load_summarizer
    from scalegrad.tasks.summarization.writing import summarize

    with status(f"loading {writing.model}"):
        network, tokenizer = load_summarizer(writing.model, loading.device, loading.dtype, loading.trust_remote_code)
    form = format_for(network, tokenizer, template=writing.template or _template_of(writing.model))
    good = [(place, record.pair) for place, record in enumerate(records) if record.pair and not record.problem]
    with bars() as progress:
        texts = summarize(
            network,
            form,
            [pair for _, pair in good],
            writing.strategy,
            new_tokens=writing.new_tokens,
            min_new_tokens=writing.min_new_tokens,
            seed=writing.seed,
            batch=writing.batch,
            progress=lambda done, total: progress("summarising", done, total),
        )
    summaries = dict(zip((place for place, _ in good), texts, strict=True))
    lines = [
        {"id": record.pair.id if record.pair else record.place, "summary": summaries.get(place, "")}
        | ({"problem": f"{record.problem}: {record.detail}".removesuffix(": ")} if record.problem else {})
        for place, record in enumerate(records)
    ]
    if writing.out == "-":
        sys.stdout.write("".join(line(entry) for entry in lines))
    else:
        write_lines(writing.out, lines)
    cut = form.cuts.sentence({"articles": form.limits()["articles"]})
    _tell(len(records), len(good), cut, writing.out, as_json)


def _tell(records: int, good: int, cut: str | None, out: str, as_json: bool) -> None:
    left = records - good
    if as_json:
        print(json.dumps({"out": out, "articles": records, "summarised": good, "left_out": left, "cut": cut}))
        return
    parts = [counted(good, "summary", "summaries") + ("" if out == "-" else f" in {out}")]
    if left:
        why = "its line says why" if left == 1 else "their lines say why"
        parts.append(f"{left:,} of {counted(records, 'article')} could not be read: {why}")
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
    from scalegrad.results.comparison import find_runs

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


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Our own remarks as one line each, and each only once."""
    seen: set[str] = set()
    usual: Callable[..., Any] = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
        if category is not UserWarning:
            usual(message, category, *where, **options)
        elif str(message) not in seen:
            seen.add(str(message))
            print(f"scalegrad: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
