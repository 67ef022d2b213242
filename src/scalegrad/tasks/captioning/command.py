"""`scalegrad caption`: train, evaluate and use image paragraph captioners."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from scalegrad.counts import counted
from scalegrad.decoding.strategies import parse as parse_strategy
from scalegrad.extras import need
from scalegrad.models.pretrained import find_place
from scalegrad.options import FLAT, AsJson, Overwrite, SkipBad, option
from scalegrad.runs.terminal import bars, quiet_transformers, status
from scalegrad.tasks.captioning.config import Captioning, Seeing

if TYPE_CHECKING:
    from scalegrad.data import Problems
    from scalegrad.runs import Row, Run
    from scalegrad.runs.progress import Progress
    from scalegrad.tasks.captioning.dataset import Example

app = App(
    name="caption",
    help="Paragraphs about images: train a captioner, score it, use it.\n\n"
    "Example: scalegrad caption train --out captioner",
)

MODEL = "A run's folder, or a saved captioner."

_CAPTIONING, _SEEING = Captioning(), Seeing()


@app.command(sort_key=1)
def train(
    *,
    out: Annotated[Path, option(help="Folder of the runs and report.html.")] = Path("captioner"),
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
    from scalegrad.runs import check_writable_folder

    files = captioning.files()
    if files:
        seeing.check()
    check_writable_folder(out, "out")
    need("transformers", extra="caption")
    quiet_transformers()
    from scalegrad.data import Problems
    from scalegrad.tasks.captioning.experiment import SCALES, train_captioners
    from scalegrad.tasks.captioning.splits import Files, Source, load_splits
    from scalegrad.tasks.captioning.training import PAPER

    objectives, seeds, epochs = list(captioning.objective), captioning.seeds, captioning.epochs
    problems = Problems(skip_bad)
    with bars() as progress:
        source: Source
        source, recipe = SCALES[captioning.scale]
        if files:
            source = Files(
                files["train"], files["valid"], files["test"], seeing.features, seeing.images, captioning.extractor,
                kept_in=out, skip_bad=skip_bad,
            )  # fmt: skip
            recipe = PAPER
            load_splits(source, progress, problems)  # here, to find and count what is wrong with them
        recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
        options: dict[str, Any] = {"processes": captioning.parallel or None, "overwrite": overwrite}
        runs = train_captioners(source, recipe, out, objectives, range(seeds), progress=progress, **options)
    problems.report()
    _show(runs, out, seeing.images, as_json)


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

    Example: scalegrad caption evaluate captioner/sg-0.5-seed-0 --strategy greedy --strategy greedy,soft_block=3

    Example: scalegrad caption evaluate --paragraphs val.json
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    strategies = [parse_strategy(text) for text in strategy]
    if model is None and paragraphs is None:
        raise ValueError("give MODEL to score it, or --paragraphs FILE for the figures of those who wrote them")
    if paragraphs is not None and not paragraphs.exists():
        raise FileNotFoundError(f"paragraphs: there is no file {paragraphs}")
    if model is not None:
        find_place(model)
        if paragraphs is not None:
            seeing.check()
    from scalegrad.data import Problems
    from scalegrad.tasks.captioning.experiment import rows_of_texts
    from scalegrad.tasks.captioning.paragraphs import read_coco

    problems = Problems(skip_bad)
    items = read_coco(paragraphs, problems)[:limit] if paragraphs else None
    from scalegrad.tasks.captioning.scoring import describe, repetitiveness, score

    about = {"task": "captioning", "corpus": paragraphs.name if paragraphs else "scenes"}
    about |= {} if paragraphs else {"split": "test"}
    if model is None:
        written = [item.paragraph for item in items or []]
        rows = rows_of_texts(repetitiveness(written), objective="human", **about)
    else:
        quiet_transformers()
        with bars() as progress, status(f"loading {model}"):
            network, tokenizer = _load(model)
            cache = _kept_beside(model, paragraphs)
            examples = _examples(items, network, seeing, cache, problems, limit, progress)
        references = [item.paragraph for item in examples]
        rows = rows_of_texts(repetitiveness(references), objective="human", **about)
        for how in strategies:
            keys = [item.image_id for item in examples]
            made = describe(network, tokenizer, [item.regions for item in examples], how, keys=keys)
            decoded = {"model": str(Path(model).resolve()), "decoding": how.decoding, "penalty": how.penalty}
            rows += rows_of_texts(score(made, references), **about, **decoded)
    problems.report()
    if as_json:
        print(json.dumps({"rows": [row.as_dict() for row in rows], "notes": []}, indent=2))
    else:
        _print_figures(rows, str(paragraphs or "drawn test scenes"))


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

    Example: scalegrad caption describe captioner/sg-0.5-seed-0 beach.png street.jpg

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
    from scalegrad.data import Problems
    from scalegrad.tasks.captioning.extraction import extract, load_extractor
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
    problems.report()


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
    progress: Progress,
) -> list[Example]:
    from scalegrad.tasks.captioning.dataset import examples_of
    from scalegrad.tasks.captioning.extraction import features_of
    from scalegrad.tasks.captioning.features import open_features
    from scalegrad.tasks.captioning.splits import scene_examples

    if items is None:
        return scene_examples("test", limit or 200, progress)
    images = seeing.images
    maker = network.config.regions_from
    if images and not maker:
        raise ValueError("this captioner was trained on features made elsewhere: give --features PATH, not --images")
    regions = features_of(images, maker, cache, problems, progress) if images else open_features(seeing.features or "")
    return examples_of(items, regions, problems)


def _show(runs: Sequence[Run], out: Path, images: Path | None, as_json: bool) -> None:
    from rich.console import Console

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
    from rich.console import Console

    from scalegrad.results.comparison import compare
    from scalegrad.results.comparison.terminal import print_table
    from scalegrad.results.frame import frame

    console = Console()
    console.print(f"[bold]{corpus}[/bold], {counted(rows[0].n or 0, 'paragraph')}")
    comparison = compare(frame(rows))
    print_table(replace(comparison, systems=[one for one in comparison.systems if one.figures]), console)
