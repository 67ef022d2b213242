"""The paper's captioning experiment: objectives trained alike, β chosen on validation, test figures read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from scalegrad import decoding
from scalegrad.objectives import Objective
from scalegrad.runs import Run
from scalegrad.tasks.captioning.dataset import Example, Paragraphs, examples_of
from scalegrad.tasks.captioning.extraction import SCENES as SCENES_DETECTOR
from scalegrad.tasks.captioning.extraction import extract, load_extractor
from scalegrad.tasks.captioning.features import Features
from scalegrad.tasks.captioning.paragraphs import check_disjoint, check_sizes, file_hash, read_coco
from scalegrad.tasks.captioning.problems import Problems
from scalegrad.tasks.captioning.scenes import make_scenes
from scalegrad.tasks.captioning.scoring import BETAS, TRIGRAMS, Told, choose_beta, describe, repetitiveness, score
from scalegrad.tasks.captioning.training import Recipe, record, train_captioner
from scalegrad.tasks.captioning.vocabulary import build_tokenizer

STOCHASTIC = ("top_p=0.3", "top_p=0.9", "top_k=40", "top_k=100")
PLACES = {"data.regions": ()}  # where a run's config.json may name a file or folder
FILES = ("captions.json",)  # what this task saves in a run's folder, beside what every run has
PLAIN, BLOCKED = "greedy", "3-block"


@dataclass(frozen=True)
class Splits:
    """Examples for training, validation and test; `regions_from` and `about` say where they come from."""

    train: Sequence[Example]
    valid: Sequence[Example]
    test: Sequence[Example]
    regions_from: str
    about: dict[str, Any]


def scene_splits(sizes: Mapping[str, int], told: Told | None = None, regions: Features | None = None) -> Splits:
    """Drawn scenes, so many of each split, seen by the detector that comes with the package.

    `regions` holds the features of all of them (`scene_regions`): then nothing is drawn, and Pillow is not needed.
    """
    found = {split: scene_examples(split, size, told, regions) for split, size in sizes.items()}
    return Splits(**found, regions_from=SCENES_DETECTOR, about={"name": "scenes", **sizes})


def scene_examples(split: str, count: int, told: Told | None = None, regions: Features | None = None) -> list[Example]:
    """The first `count` drawn scenes of a split."""
    seen = scene_regions(split, count, told) if regions is None else regions
    return [Example(scene.name, seen[scene.name], scene.paragraph) for scene in make_scenes(split, count)]


def scene_regions(split: str, count: int, told: Told | None = None) -> dict[str, Tensor]:
    """The region features of the first `count` drawn scenes of a split, by name."""

    def drawn(done: int, total: int) -> None:
        if told:
            told(f"drawing {split} scenes", done, total)

    images = {scene.name: scene.image for scene in make_scenes(split, count)}
    return extract(images, load_extractor(SCENES_DETECTOR), progress=drawn)


def file_splits(
    files: Mapping[str, Path],
    regions: Callable[[], Features],
    regions_named: str,
    regions_from: str = "",
    *,
    problems: Problems | None = None,
    published: bool = False,
) -> Splits:
    """The paragraphs of COCO caption files {"train", "valid", "test"} with the features of their images.

    `regions()` gives the features, once the paragraphs are read; `regions_named` says in the runs' record which they
    are, `regions_from` what made them ("": not to be made again). Splits must not share an image; with `published` they
    must have as many as those of Visual Genome.
    """
    items = {name: read_coco(path, problems) for name, path in files.items()}
    if published:
        check_sizes({"train": items["train"], "val": items["valid"], "test": items["test"]})
    else:
        check_disjoint({name: {item.image_id for item in found} for name, found in items.items()})
    features = regions()
    examples = {name: examples_of(found, features, problems) for name, found in items.items()}
    about = {"name": files["test"].name, **{name: file_hash(path) for name, path in files.items()}}
    return Splits(**examples, regions_from=regions_from, about={**about, "regions": regions_named})


def run_objective(
    objective: Objective,
    splits: Splits,
    recipe: Recipe,
    folder: Path,
    *,
    seed: int = 0,
    stochastic: Sequence[str] = STOCHASTIC,
    betas: Mapping[str, Sequence[float]] | None = None,
    overwrite: bool = False,
    told: Told | None = None,
    callbacks: Iterable[Any] = (),
) -> Run:
    """Train one captioner and score it on the test set; a finished run is only loaded.

    The run's folder gets captions.json: the chosen β, figures by decoding, the human figures; texts in samples/.
    MLE is also decoded with each of `stochastic`, and with the penalty that is ScaleGrad's twin (γ = 0.5). `betas`: as
    for `evaluate_captioner`.
    """
    config = record(recipe, objective, splits.about, seed)
    run = Run.create(folder, config, overwrite=overwrite, places=PLACES, files=FILES)
    if run.finished and (run.path / "captions.json").exists():
        return run
    tokenizer = build_tokenizer((example.paragraph for example in splits.train), recipe.more_than)
    fitted = train_captioner(
        objective,
        Paragraphs(splits.train, tokenizer),
        Paragraphs(splits.valid, tokenizer),
        tokenizer,
        run,
        recipe,
        seed=seed,
        regions_from=splits.regions_from,
        callbacks=callbacks,
    )
    decoded = ("greedy,gamma=0.5", *stochastic) if objective.name == "mle" else ()
    found = evaluate_captioner(
        fitted.model, tokenizer, splits.valid, splits.test, decoded, betas=betas, seed=seed, told=told
    )
    for name, texts in found.pop("texts").items():
        lines = [{"image_id": item.image_id, "text": text} for item, text in zip(splits.test, texts, strict=True)]
        run.save(f"samples/{name}.jsonl", lines)
    lines = [{"image_id": item.image_id, "text": item.paragraph} for item in splits.test]
    run.save("samples/references.jsonl", lines)
    about = {
        "validation_nll": fitted.validation_nll,
        "validation_ppl": fitted.validation_ppl,
        "seconds": fitted.seconds,
    }
    run.save("captions", {**found, **about})
    return run


def evaluate_captioner(
    model: Any,
    tokenizer: Any,
    valid: Sequence[Example],
    test: Sequence[Example],
    decoded: Sequence[str] = (),
    *,
    betas: Mapping[str, Sequence[float]] | None = None,
    seed: int = 0,
    told: Told | None = None,
) -> dict[str, Any]:
    """Figures on `test`: greedy without and with soft trigram blocking, then `decoded`; β of greedy ones from `valid`.

    `betas` names for a decoding ("greedy", "3-block", …) the β to choose from, where not all of 0, .1, … 1 are.

    {"rows": {name: figures}, "strategies": {name: text}, "betas": {name: {β: validation CIDEr}}, "human": figures,
    "texts": {name: paragraphs}}.
    """
    model = model.eval()
    strategies: dict[str, str] = {}
    tried: dict[str, dict[str, float]] = {}
    wanted: dict[str, decoding.Strategy] = {PLAIN: decoding.Greedy(), BLOCKED: decoding.Greedy(soft_block=TRIGRAMS)}
    for name, strategy in (wanted | {text: decoding.parse(text) for text in decoded}).items():
        if isinstance(strategy, decoding.Greedy):  # each with its own best length: otherwise lengths are compared
            choice = (betas or {}).get(name, BETAS)
            strategy, tried[name] = choose_beta(model, tokenizer, valid, strategy, choice, told=told)
        strategies[name] = str(strategy)
    regions, keys = [item.regions for item in test], [item.image_id for item in test]
    references = [item.paragraph for item in test]
    texts = {}
    for number, (name, text) in enumerate(strategies.items()):
        texts[name] = describe(model, tokenizer, regions, text, keys=keys, seed=seed)
        if told:
            told("describing test images", number + 1, len(strategies))
    return {
        "rows": {name: score(made, references) for name, made in texts.items()},
        "strategies": strategies,
        "betas": tried,
        "human": repetitiveness(references),
        "texts": texts,
    }
