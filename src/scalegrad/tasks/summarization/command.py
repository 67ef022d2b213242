"""`scalegrad summarize`: train a summariser with each objective, evaluate it, and summarise what users bring."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.runs.terminal import Device, Dtype, bars, quiet_transformers, read_batch, status

if TYPE_CHECKING:
    from scalegrad.runs import Run
    from scalegrad.runs.progress import Progress
    from scalegrad.tasks.summarization.recipes import Recipe

app = typer.Typer(
    help="Summarise: train with MLE, UL or ScaleGrad, evaluate, write summaries.\n\n"
    "Example: scalegrad summarize train runs/tldr --recipe small --limit 200",
    no_args_is_help=True,
)

DEFAULT_OBJECTIVES = ["mle", "ul=0.5", "sg=0.8"]  # the paper's choice for summarisation

Out = Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the runs, one for each objective.")]
Model = Annotated[
    str, typer.Option(help="A BERT (minilm, a name or folder) for a BertSum; or an encoder-decoder or causal LM.")
]
Data = Annotated[
    str, typer.Option(help="scitldr (embedded), a folder with train/validation/test files, a file, cnn_dailymail, …")
]
Objectives = Annotated[
    list[str] | None,
    typer.Option("--objective", "-o", help="mle, ul=α or sg=γ. May be repeated (default: mle, ul=0.5, sg=0.8)."),
]
RecipeName = Annotated[
    str | None, typer.Option("--recipe", help="paper, abstracts, small or finetune (default: by model and machine).")
]
Limit = Annotated[
    int | None, typer.Option(help="Use only this many training pairs, and a quarter as many to validate.")
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", "--max-steps", help="Training steps of the model that writes (default: the recipe's)."),
]
Prompt = Annotated[str | None, typer.Option(help="A causal LM's prompt, with {article} where the article goes.")]
SourceSeen = Annotated[bool, typer.Option("--source-seen", help="Count the article's tokens as seen, too.")]
Corpus = Annotated[str | None, typer.Option(help="cnn_dailymail or nyt50: compare the data's sizes with the paper's.")]
Seed = Annotated[int, typer.Option(help="Seed of new weights, the order of the data, dropout and sampling.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew where OUT holds runs of other settings.")]
DecodingSeed = Annotated[int, typer.Option("--seed", help="Seed of sampled summaries.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Folders = Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Runs, or folders that hold runs.")]
Betas = Annotated[
    list[float] | None,
    typer.Option(
        "--beta", help="A length normalisation β to choose from. May be repeated; one alone is taken as it is."
    ),
]
Strategies = Annotated[
    list[str] | None, typer.Option("--strategy", "-s", help="A further way to decode. May be repeated.")
]
Stochastic = Annotated[bool, typer.Option("--stochastic", help="Also top-p .3/.9 and top-k 40/100, as in the paper.")]
TestLimit = Annotated[
    int | None, typer.Option("--limit", help="Use only this many test pairs, and as many to choose β by.")
]
NoMover = Annotated[bool, typer.Option("--no-mover", help="Leave MoverScore out.")]
Html = Annotated[Path | None, typer.Option(metavar="OUT", help="Write the page: table, and summaries side by side.")]
Batch = Annotated[str, typer.Option(help="Articles at a time, or auto: what fits into memory.")]
File = Annotated[
    str, typer.Argument(metavar="FILE", help=".txt, .story, .jsonl or .csv (also .gz, .xz), a folder, or - (JSONL).")
]
Summarizer = Annotated[str, typer.Option("--model", "-m", help="A run's folder, a model's folder, or a hub name.")]
Written = Annotated[str, typer.Option("--out", metavar="FILE", help="JSONL to write, or - for standard output.")]
Strategy = Annotated[str, typer.Option("--strategy", "-s", help="How to decode, such as greedy or top_p=0.9.")]
Least = Annotated[int, typer.Option("--min-new-tokens", help="Generate at least this many tokens.")]
Most = Annotated[int, typer.Option("--max-new-tokens", help="Generate at most this many tokens.")]


@app.command()
def train(
    out: Out,
    model: Model = "minilm",
    data: Data = "scitldr",
    objective: Objectives = None,
    recipe: RecipeName = None,
    limit: Limit = None,
    steps: Steps = None,
    prompt: Prompt = None,
    source_seen: SourceSeen = False,
    corpus: Corpus = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a summariser with each objective: for a BERT, sentence selection first, then writing.

    Stopped at any moment, the same command goes on where it was.

    Example: scalegrad summarize train runs/tldr --recipe small --limit 200 --objective mle --objective sg=0.8
    """
    for module in ("transformers", "accelerate"):
        need(module, extra="summarize")
    quiet_transformers()
    from scalegrad.tasks.summarization.corpora import check_sizes
    from scalegrad.tasks.summarization.training import Task
    from scalegrad.tasks.summarization.training import train as train_all
    from scalegrad.training import training_progress

    chosen = _recipe(recipe, model, seed, steps)
    task = Task(model, data, chosen, limit, prompt, source_seen)
    with _plain_warnings(), bars() as told:
        if corpus is not None:
            check_sizes(corpus, {split: len(task.pairs(split)) for split in ("train", "validation")})
        fitted = train_all(
            task,
            objective or DEFAULT_OBJECTIVES,
            out,
            overwrite=overwrite,
            callbacks=lambda stage: [training_progress(told, stage)],
            progress=told,
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


@app.command()
def evaluate(
    folders: Folders,
    data: Annotated[str | None, typer.Option(help="Other data than the runs were trained on.")] = None,
    beta: Betas = None,
    strategy: Strategies = None,
    stochastic: Stochastic = False,
    limit: TestLimit = None,
    no_mover: NoMover = False,
    corpus: Corpus = None,
    html: Html = None,
    seed: DecodingSeed = 0,
    batch: Batch = "auto",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """Choose β on the validation set, decode the test set with beam 5, and score: ROUGE, MoverScore, Rep-n, novelty.

    Example: scalegrad summarize evaluate runs/tldr --limit 100 --html report.html
    """
    size = read_batch(batch)
    need("transformers", extra="summarize")
    quiet_transformers()
    from scalegrad.tasks.summarization.corpora import check_sizes, load_split
    from scalegrad.tasks.summarization.evaluation import Evaluation, evaluate_run
    from scalegrad.tasks.summarization.report import load_sheet, print_sheet, write_page
    from scalegrad.tasks.summarization.writing import BETAS, STOCHASTIC

    runs = _runs(folders)
    strategies = (*(strategy or ()), *(STOCHASTIC if stochastic else ()))
    options = {"betas": tuple(beta or BETAS), "strategies": strategies, "mover": not no_mover, "seed": seed}
    options |= {"batch": size, "device": device, "dtype": dtype}
    found = {}
    with _plain_warnings(), bars() as told:
        for run in runs:
            name = data or run.config["data"]["name"]
            test = load_split(name, "test", limit, progress=told)
            if corpus is not None:
                check_sizes(corpus, {"test": len(test)})
            how = Evaluation.of(run.config["recipe"], **options)
            validation = load_split(name, "validation", limit, progress=told)
            found[str(run.path)] = evaluate_run(run, corpus or Path(name).name, validation, test, how, _of(run, told))
    names = {corpus or Path(data or run.config["data"]["name"]).name for run in runs}
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    for name in sorted(names):
        these = [run for run in runs if (corpus or Path(data or run.config["data"]["name"]).name) == name]
        sheet = load_sheet(these, name)
        if not as_json:
            print_sheet(sheet, Console())
        if html is not None:
            path = html if len(names) == 1 else html.with_stem(f"{html.stem}-{name}")
            write_page(sheet, path)
            print(f"In {path}", file=sys.stderr)


@app.command()
def summarize(
    file: File,
    model: Summarizer,
    out: Written = "-",
    strategy: Strategy = "beam=5,gnmt=1.0,block_words=3",
    min_new_tokens: Least = 0,
    max_new_tokens: Most = 140,
    prompt: Prompt = None,
    seed: DecodingSeed = 0,
    batch: Batch = "auto",
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:
    """Summarise every article of FILE, to a JSON line each.

    Example: scalegrad summarize summarize article.txt --model runs/tldr/sg=0.8
    """
    size = read_batch(batch)
    if as_json and out == "-":
        raise ValueError("--json reports on standard output, where the summaries go: give --out FILE")
    need("transformers", extra="summarize")
    quiet_transformers()
    from scalegrad.data.pairs import read_pairs
    from scalegrad.runs.atomic import line, write_lines
    from scalegrad.runs.progress import bind
    from scalegrad.tasks.summarization.formats import format_for
    from scalegrad.tasks.summarization.models import load_summarizer
    from scalegrad.tasks.summarization.writing import summarize as write

    pairs = read_pairs(file, summaries=False)
    with status(f"loading {model}"):
        network, tokenizer = load_summarizer(model, device, dtype)
    form = format_for(network, tokenizer, prompt=prompt or _prompt_of(model))
    with bars() as told:
        texts = write(
            network,
            form,
            pairs,
            strategy,
            max_new_tokens=max_new_tokens,
            min_new_tokens=min_new_tokens,
            seed=seed,
            batch=size,
            progress=bind(told, "summarising"),
        )
    lines = [{"id": pair.id, "summary": text} for pair, text in zip(pairs, texts, strict=True)]
    if out == "-":
        sys.stdout.write("".join(line(entry) for entry in lines))
    else:
        write_lines(out, lines)
    _tell(len(pairs), form.cuts.sentence({"articles": form.limits()["articles"]}), out, as_json)


def _tell(summarised: int, cut: str | None, out: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"out": out, "summarised": summarised, "cut": cut}))
        return
    sentences = [counted(summarised, "summary", "summaries") + ("" if out == "-" else f" in {out}")]
    print("; ".join(sentences + ([cut] if cut else [])), file=sys.stderr)


def _recipe(name: str | None, model: str, seed: int, steps: int | None) -> Recipe:
    """The recipe by its name; without one, what suits the model and the machine."""
    import torch

    from scalegrad.tasks.summarization.models import is_bert
    from scalegrad.tasks.summarization.recipes import RECIPES

    if name is None:
        name = "finetune" if not is_bert(model) else "abstracts" if torch.cuda.is_available() else "small"
    if name not in RECIPES:
        raise ValueError(f"--recipe must be one of {', '.join(RECIPES)}, not {name!r}")
    found = RECIPES[name](seed)
    if steps is None:
        return found
    return replace(found, writer=replace(found.writer, max_steps=steps, epochs=None, evaluate_every=None))


def _runs(folders: Sequence[Path]) -> list[Run]:
    """The finished summarisation runs in these folders; stage 1 is none to evaluate."""
    from scalegrad.results.comparison import find_runs

    found = [
        run for run in find_runs(folders) if run.config.get("task") == "summarization" and "objective" in run.config
    ]
    if not found:
        raise ValueError(f"{', '.join(map(str, folders))}: there is no run of scalegrad summarize train")
    return found


def _prompt_of(model: str) -> str | None:
    """The prompt a run was trained with."""
    from scalegrad.runs import Run

    folder = Path(model).expanduser()
    return Run.open(folder).config.get("prompt") if (folder / "done.json").is_file() else None


def _of(run: Run, told: Progress) -> Progress:
    return lambda what, done, total: told(f"{run.path.name}: {what}", done, total)


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
