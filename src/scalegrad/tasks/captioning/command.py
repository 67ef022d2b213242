"""`scalegrad caption`: train, evaluate and use image paragraph captioners."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.objectives import parse as parse_objective
from scalegrad.runs.terminal import bars, quiet_transformers, status

if TYPE_CHECKING:
    from scalegrad.data.problems import Problems
    from scalegrad.runs.progress import Progress
    from scalegrad.tasks.captioning.dataset import Example
    from scalegrad.tasks.captioning.experiment import Splits
    from scalegrad.tasks.captioning.report import CaptionRun

app = typer.Typer(
    help="Paragraphs about images: train a captioner, score it, use it.\n\n"
    "Example: scalegrad caption train --out captioner",
    no_args_is_help=True,
)

ON_PAGE = 6  # pictures on the page

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the runs, captions.json and report.html go.")]
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
Parallel = Annotated[
    int, typer.Option(help="Drawn scenes: trainings at a time, each a process (0: all on a CPU, one on a GPU).")
]
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
    from dataclasses import replace

    from scalegrad.data.problems import Problems
    from scalegrad.runs import check_writable_folder, write_json
    from scalegrad.tasks.captioning.experiment import PAPER_OBJECTIVES
    from scalegrad.tasks.captioning.runs import SCALES, caption_experiment, run_scenes, summary, trainings_at_a_time
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
        if own:
            named = {name: path for name, path in files.items() if path}
            splits = _splits(named, features, images, extractor, problems, out, visual_genome, told)
            recipe = PAPER if epochs is None else replace(PAPER, epochs=epochs)
            runs = caption_experiment(splits, recipe, out, objectives, range(seeds), overwrite=overwrite, told=told)
        else:
            at_a_time = parallel or trainings_at_a_time(len(objectives) * seeds)
            options: dict[str, Any] = {"epochs": epochs, "overwrite": overwrite, "told": told}
            runs = run_scenes(scale, out, objectives, seeds, at_a_time, **options)
    write_json(out / "captions.json", {"runs": summary(runs), "left_out": problems.places})
    _report_problems(problems)
    _show(runs, out, test.name if test else "scenes", images, as_json)


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

    Example: scalegrad caption evaluate captioner/sg-0.5-seed0 --strategy greedy --strategy greedy,soft_block=3

    Example: scalegrad caption evaluate --paragraphs val.json
    """
    from scalegrad.data.problems import Problems
    from scalegrad.tasks.captioning.paragraphs import read_coco
    from scalegrad.tasks.captioning.scoring import describe, repetitiveness, score

    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, not {limit}")
    problems = Problems(skip_bad)
    items = read_coco(paragraphs, problems)[:limit] if paragraphs else None
    if model is None:
        if items is None:
            raise ValueError("give MODEL to score it, or --paragraphs FILE for the figures of those who wrote them")
        found = {"human": repetitiveness([item.paragraph for item in items])}
    else:
        quiet_transformers()
        with bars() as told, status(f"loading {model}"):
            network, tokenizer = _load(model)
            cache = _kept_beside(model, paragraphs)
            examples = _examples(items, network, features, images, cache, problems, limit, told)
        references = [item.paragraph for item in examples]
        found = {"human": repetitiveness(references)}
        for text in strategy or ["greedy", "greedy,soft_block=3"]:
            keys = [item.image_id for item in examples]
            made = describe(network, tokenizer, [item.regions for item in examples], text, keys=keys)
            found[text] = score(made, references)
    _report_problems(problems)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print_figures(found, str(paragraphs or "drawn test scenes"))


@app.command()
def caption(
    image: Pictures,
    model: Model,
    strategy: Strategy = "greedy,soft_block=3",
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Describe images with a trained captioner, a paragraph each.

    Example: scalegrad caption caption beach.png street.jpg --model captioner/sg-0.5-seed0
    """
    quiet_transformers()
    from scalegrad.data.problems import Problems
    from scalegrad.tasks.captioning.extraction import extract, load_extractor
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


def _splits(
    files: Mapping[str, Path], features: Path | None, images: Path | None, extractor: str, problems: Problems,
    cache: Path, visual_genome: bool, told: Progress,
) -> Splits:  # fmt: skip
    """The user's own paragraphs and features."""
    from scalegrad.tasks.captioning.experiment import file_splits
    from scalegrad.tasks.captioning.extraction import features_of
    from scalegrad.tasks.captioning.features import open_features

    if (features is None) == (images is None):
        raise ValueError("give --features PATH or --images FOLDER: a captioner sees images through region features")
    return file_splits(
        files,
        lambda: features_of(images, extractor, cache, problems, told) if images else open_features(features or ""),
        f"{images} by {extractor}" if images else str(features),
        "" if features else extractor,
        problems=problems,
        published=visual_genome,
    )


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
    limit: int | None, told: Progress,
) -> list[Example]:  # fmt: skip
    from scalegrad.tasks.captioning.dataset import examples_of
    from scalegrad.tasks.captioning.experiment import scene_examples
    from scalegrad.tasks.captioning.extraction import features_of
    from scalegrad.tasks.captioning.features import open_features

    if items is None:
        return scene_examples("test", limit or 200, told)
    if (features is None) == (images is None):
        raise ValueError("give --features PATH or --images FOLDER: a captioner sees images through region features")
    maker = network.config.regions_from
    if images and not maker:
        raise ValueError("this captioner was trained on features made elsewhere: give --features PATH, not --images")
    regions = features_of(images, maker, cache, problems, told) if images else open_features(features or "")
    return examples_of(items, regions, problems)


def _show(runs: list[CaptionRun], out: Path, corpus: str, images: Path | None, as_json: bool) -> None:
    from scalegrad.results.comparison import write_page
    from scalegrad.results.comparison.terminal import print_comparison, print_table
    from scalegrad.tasks.captioning.report import choose_strengths, compare_captions, compare_stochastic
    from scalegrad.tasks.captioning.runs import summary

    written = runs[0].texts["references"]
    names = list(written)[:: max(1, len(written) // ON_PAGE)][:ON_PAGE]  # evenly spread: nobody chooses
    comparison = compare_captions(
        runs, corpus, {name: written[name] for name in names}, _pictures(names, corpus, images)
    )
    page = write_page(comparison, out / "report.html")
    if as_json:
        print(json.dumps(summary(runs), indent=2))
        return
    console = Console()
    print_comparison(comparison, console)
    for family, labels in choose_strengths(runs).items():
        told = ", ".join(f"{label} for {name}" for name, label in labels.items())
        console.print(f"Of the {family} strengths, validation CIDEr chooses {told}.")
    if (drawn := compare_stochastic(runs, corpus)) is not None:
        console.print("\n[bold]Sampling from the MLE model, against its greedy search with trigram blocking[/bold]")
        print_table(drawn, console)
    print(f"In {out / 'captions.json'}; pictures and paragraphs side by side in {page}", file=sys.stderr)


def _pictures(names: Sequence[str], corpus: str, images: Path | None) -> dict[str, str]:
    """Pictures for the page, as data: addresses, as far as they are at hand."""
    from scalegrad.tasks.captioning.extraction import images_in, read_image
    from scalegrad.tasks.captioning.runs import picture_address, scene_picture

    if corpus == "scenes":
        return {name: scene_picture(name) for name in names}
    files = images_in(images) if images else {}
    return {name: picture_address(read_image(files[name])) for name in names if name in files}


def _print_figures(found: Mapping[str, Mapping[str, float]], corpus: str) -> None:
    from scalegrad.results.comparison import Comparison, System
    from scalegrad.results.comparison.terminal import print_table
    from scalegrad.tasks.captioning.report import FIGURES

    # Without a model the people's figures are the table, not what a table is held against.
    alone = set(found) == {"human"}
    rows = [
        System(name, {key: value for key, value in figures.items() if key in FIGURES}, kind)
        for name, figures in found.items()
        for kind in ("human" if name == "human" and not alone else "trained",)
    ]
    console = Console()
    console.print(f"[bold]{corpus}[/bold], {counted(int(found['human']['n_texts']), 'paragraph')}")
    print_table(Comparison(rows), console)


def _report_problems(problems: Problems) -> None:
    if problems.count:
        print(problems, file=sys.stderr)
