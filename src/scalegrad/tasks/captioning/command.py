"""`scalegrad caption`: train, evaluate and use image paragraph captioners."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from scalegrad.counts import counted
from scalegrad.decoding.strategies import parse as parse_strategy
from scalegrad.extras import need
from scalegrad.models.pretrained import find_place
from scalegrad.objectives import Objective
from scalegrad.objectives import parse as parse_objective
from scalegrad.options import FLAT, AsJson, Overwrite, SkipBad, option, several
from scalegrad.runs.terminal import bars, quiet_transformers, status

if TYPE_CHECKING:
    from scalegrad.tasks.captioning.dataset import Example
    from scalegrad.tasks.captioning.experiment import Splits
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.report import CaptionRun
    from scalegrad.tasks.captioning.scoring import Told

app = App(
    name="caption",
    help="Paragraphs about images: train a captioner, score it, use it.\n\n"
    "Example: scalegrad caption train --out captioner",
)

ON_PAGE = 6  # pictures on the page
PAPER_OBJECTIVES = tuple(parse_objective(text) for text in ("mle", "ul=0.5", "sg=0.5"))
MODEL = "A run's folder, or a saved captioner."


@dataclass(frozen=True, kw_only=True)
class Seeing:
    """Where the captioner's regions come from: features that are there, or images to extract them from."""

    features: Path | None = None
    """Region features: a folder of .npy or .npz, or one file for all."""
    images: Path | None = None
    """Folder of images named by id, to extract features from."""

    def __post_init__(self) -> None:
        for name in ("features", "images"):
            path = getattr(self, name)
            if path is not None and not path.exists():
                raise FileNotFoundError(f"{name}: there is no file or folder {path}")

    def check(self) -> None:
        """Refuse both, and neither."""
        if (self.features is None) == (self.images is None):
            raise ValueError("give --features PATH or --images FOLDER: a captioner sees images through region features")


@dataclass(frozen=True, kw_only=True)
class Captioning:
    """What to train a captioner on, and how often. Without files: drawn scenes that come with the package."""

    objective: Annotated[tuple[Objective, ...], several(parse_objective)] = PAPER_OBJECTIVES
    """mle, ul=α or sg=γ. May be repeated."""
    scale: str = "small"
    """Drawn scenes: small (minutes on a CPU) or large (a GPU)."""
    seeds: int = 1
    """Train each objective this many times, with other seeds."""
    train: Path | None = None
    """COCO captions to train on, not scenes."""
    valid: Path | None = None
    """COCO captions for validation."""
    test: Path | None = None
    """COCO captions for the figures."""
    extractor: str = "scenes"
    """With --images: a DETR-like detector or vision backbone, hub name or folder."""
    epochs: int | None = None
    """Passes over the training paragraphs (default: the recipe's)."""
    parallel: int = 0
    """Drawn scenes: trainings at a time, each a process (0: all on a CPU, one on a GPU)."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, not {self.seeds}")
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, not {self.epochs}")
        if self.scale not in ("small", "large"):
            raise ValueError(f"scale must be one of small, large, not {self.scale!r}")
        if 0 < len(self.files()) < 3:
            raise ValueError("--train, --valid and --test belong together: give all three, or none for drawn scenes")
        for name, path in self.files().items():
            if not path.exists():
                raise FileNotFoundError(f"{name}: there is no file {path}")

    def files(self) -> dict[str, Path]:
        """The files by split; none for drawn scenes."""
        paths = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: path for name, path in paths.items() if path is not None}


_CAPTIONING, _SEEING = Captioning(), Seeing()


@app.command(sort_key=1)
def train(
    *,
    out: Annotated[Path, option(help="Folder of the runs, captions.json and report.html.")] = Path("captioner"),
    captioning: Annotated[Captioning, FLAT] = _CAPTIONING,
    seeing: Annotated[Seeing, FLAT] = _SEEING,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a captioner with each objective, all else alike, and print their figures side by side.

    Without files: on drawn scenes that come with the package. Stopped, the same command goes on.

    Example: scalegrad caption train --out captioner
    """
    from scalegrad.runs import check_writable_folder, write_json

    files = captioning.files()
    if files:
        seeing.check()
    check_writable_folder(out, "out")
    need("transformers", extra="caption")
    quiet_transformers()
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.runs import caption_experiment, run_scenes, summary, trainings_at_a_time
    from scalegrad.tasks.captioning.training import PAPER

    objectives, seeds, epochs = list(captioning.objective), captioning.seeds, captioning.epochs
    problems = Problems(skip_bad)
    with bars() as progress:
        if files:
            splits = _splits(files, seeing, captioning.extractor, problems, out, progress)
            recipe = PAPER if epochs is None else replace(PAPER, epochs=epochs)
            runs = caption_experiment(splits, recipe, out, objectives, range(seeds), overwrite=overwrite, told=progress)
        else:
            at_a_time = captioning.parallel or trainings_at_a_time(len(objectives) * seeds)
            options: dict[str, Any] = {"epochs": epochs, "overwrite": overwrite, "told": progress}
            runs = run_scenes(captioning.scale, out, objectives, seeds, at_a_time, **options)
    write_json(out / "captions.json", {"runs": summary(runs), "left_out": problems.as_dict()})
    _report_problems(problems)
    _show(runs, out, captioning.test.name if captioning.test else "scenes", seeing.images, as_json)


@app.command(sort_key=2)
def evaluate(
    model: Annotated[str | None, option(help=MODEL)] = None,
    *,
    paragraphs: Annotated[Path | None, option(help="COCO captions to score on (default: test scenes).")] = None,
    seeing: Annotated[Seeing, FLAT] = _SEEING,
    strategy: Annotated[
        tuple[str, ...], option(help="How to decode, such as greedy,soft_block=3. May be repeated.")
    ] = ("greedy", "greedy,soft_block=3"),
    limit: Annotated[int | None, option(help="Describe only the first N images.")] = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """CIDEr, BLEU and Rep-n of a captioner; without MODEL, Rep-n of the paragraphs people wrote.

    Example: scalegrad caption evaluate captioner/sg-0.5-seed0 --strategy greedy --strategy greedy,soft_block=3

    Example: scalegrad caption evaluate --paragraphs val.json
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    for text in strategy:
        parse_strategy(text)
    if model is None and paragraphs is None:
        raise ValueError("give MODEL to score it, or --paragraphs FILE for the figures of those who wrote them")
    if paragraphs is not None and not paragraphs.exists():
        raise FileNotFoundError(f"paragraphs: there is no file {paragraphs}")
    if model is not None:
        find_place(model)
        if paragraphs is not None:
            seeing.check()
    from scalegrad.tasks.captioning.paragraphs import read_coco
    from scalegrad.tasks.captioning.problems import Problems

    problems = Problems(skip_bad)
    items = read_coco(paragraphs, problems)[:limit] if paragraphs else None
    from scalegrad.tasks.captioning.scoring import describe, repetitiveness, score

    if model is None:
        figures = {"human": repetitiveness([item.paragraph for item in items or []])}
    else:
        quiet_transformers()
        with bars() as progress, status(f"loading {model}"):
            network, tokenizer = _load(model)
            cache = _kept_beside(model, paragraphs)
            examples = _examples(items, network, seeing, cache, problems, limit, progress)
        references = [item.paragraph for item in examples]
        figures = {"human": repetitiveness(references)}
        for text in strategy:
            keys = [item.image_id for item in examples]
            made = describe(network, tokenizer, [item.regions for item in examples], text, keys=keys)
            figures[text] = score(made, references)
    _report_problems(problems)
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        _print_figures(figures, str(paragraphs or "drawn test scenes"))


@app.command(name="describe", sort_key=3)
def describe_images(
    model: Annotated[str, option(help=MODEL)],
    image: tuple[Path, ...],
    *,
    strategy: Annotated[str, option(help="How to decode.")] = "greedy,soft_block=3",
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Describe images with a trained captioner, a paragraph each.

    Example: scalegrad caption describe captioner/sg-0.5-seed0 beach.png street.jpg

    Parameters
    ----------
    image
        Image files.
    """
    parse_strategy(strategy)
    for path in image:
        if not path.exists() and not skip_bad:
            raise FileNotFoundError(f"image: there is no file {path}")
    find_place(model)
    quiet_transformers()
    from scalegrad.tasks.captioning.extraction import extract, load_extractor
    from scalegrad.tasks.captioning.problems import Problems
    from scalegrad.tasks.captioning.scoring import describe

    problems = Problems(skip_bad)
    with status(f"loading {model}"):
        network, tokenizer = _load(model)
        if not network.config.regions_from:
            raise ValueError(f"{model} was trained on features made elsewhere: it cannot see images")
        regions = extract({str(path): path for path in image}, load_extractor(network.config.regions_from), problems)
    texts = describe(network, tokenizer, list(regions.values()), strategy, keys=list(regions)) if regions else []
    if as_json:
        print(json.dumps(dict(zip(regions, texts, strict=True)), indent=2, ensure_ascii=False))
    else:
        for name, text in zip(regions, texts, strict=True):
            print(f"{name}: {text}")
    _report_problems(problems)


def _splits(
    files: Mapping[str, Path], seeing: Seeing, extractor: str, problems: Problems, cache: Path, progress: Told
) -> Splits:
    """The user's own paragraphs and features."""
    from scalegrad.tasks.captioning.experiment import file_splits
    from scalegrad.tasks.captioning.extraction import features_of
    from scalegrad.tasks.captioning.features import open_features

    images, features = seeing.images, seeing.features
    return file_splits(
        files,
        lambda: features_of(images, extractor, cache, problems, progress) if images else open_features(features or ""),
        f"{images} by {extractor}" if images else str(features),
        "" if features else extractor,
        problems=problems,
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
    items: Any,
    network: Any,
    seeing: Seeing,
    cache: Path | None,
    problems: Problems,
    limit: int | None,
    progress: Told,
) -> list[Example]:
    from scalegrad.tasks.captioning.dataset import examples_of
    from scalegrad.tasks.captioning.experiment import scene_examples
    from scalegrad.tasks.captioning.extraction import features_of
    from scalegrad.tasks.captioning.features import open_features

    if items is None:
        return scene_examples("test", limit or 200, progress)
    images = seeing.images
    maker = network.config.regions_from
    if images and not maker:
        raise ValueError("this captioner was trained on features made elsewhere: give --features PATH, not --images")
    regions = features_of(images, maker, cache, problems, progress) if images else open_features(seeing.features or "")
    return examples_of(items, regions, problems)


def _show(runs: list[CaptionRun], out: Path, corpus: str, images: Path | None, as_json: bool) -> None:
    from rich.console import Console

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
    from rich.console import Console

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
        print(f"left out: {problems}", file=sys.stderr)
