"""`scalegrad caption`: train, evaluate and use image paragraph captioners."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs.terminal import bars, quiet_transformers, status

if TYPE_CHECKING:
    from scalegrad.runs import Row, Run
    from scalegrad.tasks.captioning.dataset import Example
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.scoring import Told

app = typer.Typer(
    help="Paragraphs about images: train a captioner, score it, use it.\n\n"
    "Example: scalegrad caption train --out captioner",
    no_args_is_help=True,
)

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the runs and report.html go.")]
Objectives = Annotated[
    list[str] | None,
    typer.Option("--objective", "-o", help="mle, ul=α or sg=γ. May be repeated (default: mle, ul=0.5, sg=0.5)."),
]
Scale = Annotated[str, typer.Option(help="Drawn scenes: small (minutes on a CPU) or large (a GPU).")]
Seeds = Annotated[int, typer.Option(help="Train each objective this many times, with other seeds.")]
Train = Annotated[Path | None, typer.Option("--train", metavar="FILE", help="COCO captions to train on, not scenes.")]
Valid = Annotated[Path | None, typer.Option("--valid", metavar="FILE", help="COCO captions for validation.")]
Test = Annotated[Path | None, typer.Option("--test", metavar="FILE", help="COCO captions for the figures.")]
Features = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Region features: a folder of .npy or .npz, or one file for all."),
]
Images = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Images named by id, to extract features from.")]
Extractor = Annotated[
    str, typer.Option(help="With --images: a DETR-like detector or vision backbone, hub name or folder.")
]
Genome = Annotated[bool, typer.Option("--visual-genome", help="Check that the splits have the published sizes.")]
Epochs = Annotated[int | None, typer.Option(help="Passes over the training paragraphs (default: the recipe's).")]
Parallel = Annotated[int, typer.Option(help="Trainings at a time, each a process (0: all on a CPU, one on a GPU).")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out items that cannot be read, and count them.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew, whatever FOLDER holds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Paragraphs = Annotated[
    Path | None, typer.Option(metavar="FILE", help="COCO captions to score on (default: test scenes).")
]
Strategies = Annotated[
    list[str] | None,
    typer.Option("--strategy", "-s", help="How to decode, such as greedy,soft_block=3. May be repeated."),
]
Strategy = Annotated[str, typer.Option("--strategy", "-s", help="How to decode.")]
ModelOrNone = Annotated[str | None, typer.Argument(metavar="MODEL", help="A run's folder, or a saved captioner.")]
Pictures = Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Image files.")]
Model = Annotated[str, typer.Option("--model", "-m", help="A run's folder, or a saved captioner.")]
Limit = Annotated[int | None, typer.Option(help="Describe only this many images, the first ones.")]


@app.command()
def train(
    out: Out = Path("captioner"),
    objective: Objectives = None,
    scale: Scale = "small",
    seeds: Seeds = 1,
    train: Train = None,
    valid: Valid = None,
    test: Test = None,
    features: Features = None,
    images: Images = None,
    extractor: Extractor = "scenes",
    visual_genome: Genome = False,
    epochs: Epochs = None,
    skip_bad: SkipBad = False,
    parallel: Parallel = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a captioner with each objective, all else alike, and print their figures side by side.

    Without files: on drawn scenes that come with the package. Stopped, the same command goes on.

    Example: scalegrad caption train --out captioner
    """
    need("transformers", extra="caption")
    quiet_transformers()
    from scalegrad.runs import check_writable_folder
    from scalegrad.tasks.captioning.experiment import PAPER_OBJECTIVES, SCALES, train_captioners
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.splits import Files, Source, load_splits
    from scalegrad.tasks.captioning.training import PAPER

    objectives = [parse_objective(text) for text in objective] if objective else list(PAPER_OBJECTIVES)
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, not {seeds}")
    if epochs is not None and epochs < 1:
        raise ValueError(f"--epochs must be at least 1, not {epochs}")
    if scale not in SCALES:
        raise ValueError(f"--scale must be one of {', '.join(SCALES)}, not {scale!r}")
    files = {"train": train, "valid": valid, "test": test}
    own = [name for name, path in files.items() if path is not None]
    if own and len(own) < 3:
        raise ValueError("--train, --valid and --test belong together: give all three, or none for drawn scenes")
    check_writable_folder(out, "--out")
    problems = Problems(skip_bad)
    with bars() as told:
        source: Source
        source, recipe = SCALES[scale]
        if train and valid and test:
            source = Files(train, valid, test, features, images, extractor, out, visual_genome, skip_bad)
            recipe = PAPER
            load_splits(source, told, problems)  # here, to find and count what is wrong with them
        recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
        options: dict[str, Any] = {"processes": parallel or None, "overwrite": overwrite, "progress": told}
        runs = train_captioners(source, recipe, out, objectives, range(seeds), **options)
    _report_problems(problems)
    _show(runs, out, images, as_json)


@app.command()
def evaluate(
    model: ModelOrNone = None,
    paragraphs: Paragraphs = None,
    features: Features = None,
    images: Images = None,
    strategy: Strategies = None,
    limit: Limit = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """CIDEr, BLEU and Rep-n of a captioner; without MODEL, Rep-n of the paragraphs people wrote.

    Example: scalegrad caption evaluate captioner/sg-0.5-seed-0 --strategy greedy --strategy greedy,soft_block=3

    Example: scalegrad caption evaluate --paragraphs val.json
    """
    from scalegrad.decoding import parse
    from scalegrad.tasks.captioning.experiment import rows_of_texts
    from scalegrad.tasks.captioning.paragraphs import read_coco
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.scoring import describe, repetitiveness, score

    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, not {limit}")
    problems = Problems(skip_bad)
    items = read_coco(paragraphs, problems)[:limit] if paragraphs else None
    about = {"task": "captioning", "corpus": paragraphs.name if paragraphs else "scenes"}
    about |= {} if paragraphs else {"split": "test"}
    strategies = [parse(text) for text in strategy or ("greedy", "greedy,soft_block=3")]
    if model is None:
        if items is None:
            raise ValueError("give MODEL to score it, or --paragraphs FILE for the figures of those who wrote them")
        rows = rows_of_texts(repetitiveness([item.paragraph for item in items]), objective="human", **about)
    else:
        quiet_transformers()
        with bars() as told, status(f"loading {model}"):
            network, tokenizer = _load(model)
            cache = _kept_beside(model, paragraphs)
            examples = _examples(items, network, features, images, cache, problems, limit, told)
        references = [item.paragraph for item in examples]
        rows = rows_of_texts(repetitiveness(references), objective="human", **about)
        for how in strategies:
            keys = [item.image_id for item in examples]
            made = describe(network, tokenizer, [item.regions for item in examples], how, keys=keys)
            decoded = {"model": str(Path(model).resolve()), "decoding": how.decoding, "penalty": how.penalty}
            rows += rows_of_texts(score(made, references), **about, **decoded)
    _report_problems(problems)
    if as_json:
        print(json.dumps({"rows": [row.as_dict() for row in rows], "notes": []}, indent=2))
    else:
        _print_figures(rows, str(paragraphs or "drawn test scenes"))


@app.command()
def caption(
    image: Pictures,
    model: Model,
    strategy: Strategy = "greedy,soft_block=3",
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Describe images with a trained captioner, a paragraph each.

    Example: scalegrad caption caption beach.png street.jpg --model captioner/sg-0.5-seed-0
    """
    quiet_transformers()
    from scalegrad.tasks.captioning.extraction import extract, load_extractor
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.scoring import describe

    problems = Problems(skip_bad)
    with status(f"loading {model}"):
        network, tokenizer = _load(model)
        if not network.config.regions_from:
            raise ValueError(f"{model} was trained on features made elsewhere: it cannot see images")
        found = extract({str(path): path for path in image}, load_extractor(network.config.regions_from), problems)
    texts = describe(network, tokenizer, list(found.values()), strategy, keys=list(found)) if found else []
    if as_json:
        print(json.dumps(dict(zip(found, texts, strict=True)), indent=2, ensure_ascii=False))
    else:
        for name, text in zip(found, texts, strict=True):
            print(f"{name}: {text}")
    _report_problems(problems)


def _load(name: str) -> tuple[Any, Any]:
    from scalegrad.tasks.captioning.pretrained import load_captioner

    return load_captioner(name)


def _kept_beside(model: str, paragraphs: Path | None) -> Path | None:
    """Where features of images are kept: beside a run, where its training keeps them, or else beside the paragraphs.

    None where nothing may be written: scoring reads, and needs no more.
    """
    folder = Path(model).expanduser().resolve()
    run = (folder / "model" / "config.json").is_file()
    beside = folder.parent if run else (paragraphs or folder).resolve().parent
    return beside if os.access(beside, os.W_OK) else None


def _examples(
    items: Any, network: Any, features: Path | None, images: Path | None, cache: Path | None, problems: Problems,
    limit: int | None, told: Told,
) -> list[Example]:  # fmt: skip
    from scalegrad.tasks.captioning.dataset import examples_of
    from scalegrad.tasks.captioning.extraction import features_of
    from scalegrad.tasks.captioning.features import open_features
    from scalegrad.tasks.captioning.splits import scene_examples

    if items is None:
        return scene_examples("test", limit or 200, told)
    if (features is None) == (images is None):
        raise ValueError("give --features PATH or --images FOLDER: a captioner sees images through region features")
    maker = network.config.regions_from
    if images and not maker:
        raise ValueError("this captioner was trained on features made elsewhere: give --features PATH, not --images")
    regions = features_of(images, maker, cache, problems, told) if images else open_features(features or "")
    return examples_of(items, regions, problems)


def _show(runs: Sequence[Run], out: Path, images: Path | None, as_json: bool) -> None:
    from scalegrad.results.comparison import write_page
    from scalegrad.results.comparison.terminal import print_comparison, print_table
    from scalegrad.tasks.captioning.report import compare_captions, compare_stochastic, with_pictures

    comparison = with_pictures(compare_captions(runs), _pictures(runs[0].config["data"]["name"], images))
    page = write_page(comparison, out / "report.html")
    if as_json:
        rows = [row.as_dict() for run in runs for row in run.rows()]
        print(json.dumps({"rows": rows, "notes": list(comparison.notes)}, indent=2))
        return
    console = Console()
    print_comparison(comparison, console)
    if (sampled := compare_stochastic(runs)) is not None:
        console.print("\n[bold]Sampling from the MLE model, against its greedy search with trigram blocking[/bold]")
        print_table(sampled, console)
    print(f"Runs in {out}; pictures and paragraphs side by side in {page}", file=sys.stderr)


def _pictures(corpus: str, images: Path | None) -> Callable[[str], str]:
    """Gives an image's picture as a data: address; "" for one that is not at hand."""
    from scalegrad.tasks.captioning.extraction import images_in, read_image
    from scalegrad.tasks.captioning.report import picture_address, scene_picture

    if corpus == "scenes":
        return scene_picture
    files = images_in(images) if images else {}
    return lambda name: picture_address(read_image(files[name])) if name in files else ""


def _print_figures(rows: Sequence[Row], corpus: str) -> None:
    from scalegrad.results.comparison import compare
    from scalegrad.results.comparison.terminal import print_table
    from scalegrad.results.frame import frame

    console = Console()
    console.print(f"[bold]{corpus}[/bold], {counted(rows[0].n or 0, 'paragraph')}")
    comparison = compare(frame(rows))
    print_table(replace(comparison, systems=[one for one in comparison.systems if one.figures]), console)


def _report_problems(problems: Problems) -> None:
    if problems.count:
        print(f"left out: {problems}", file=sys.stderr)
