"""What of summarisation is trained at which scale.

smoke   BertSum on sixteen abstracts of SciTLDR, from a small BERT of random weights
gpu     BertSum on all of SciTLDR, a grid and three seeds; a causal LM on news, where the user has both
paper   BertSum with BERT-base on CNN/DM, and on NYT50 where the user has it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from paper.outcome import Setup
from paper.printed import SETTINGS
from paper.saved_model import unpack
from paper.small_bert import save_small_bert
from paper.summarization import Plan
from scalegrad.data.embedded import scitldr
from scalegrad.data.pairs import read_pairs, split_files
from scalegrad.models.memory import gpu_shares
from scalegrad.runs.atomic import write_lines
from scalegrad.tasks.summarization.config import Evaluation, Task
from scalegrad.tasks.summarization.models import is_bert
from scalegrad.tasks.summarization.noam import Noam
from scalegrad.tasks.summarization.recipes import Recipe, abstracts, finetune, paper, small
from scalegrad.tasks.summarization.selection import ALPHAS, GAMMAS

OBJECTIVES = ("mle", "ul=0.5", "sg=0.8")  # the paper's choice on its validation sets
GRID = ("mle", *(f"ul={alpha}" for alpha in ALPHAS), *(f"sg={gamma}" for gamma in GAMMAS))
NEWS_OBJECTIVES = ("mle", "ul=0.5", "sg=0.8", "sg=0.5", "sg=0.2")
NEWS_VALIDATION = 100  # pairs kept out of training
ENCODER, PAPER_ENCODER = "minilm", "google-bert/bert-base-uncased"
_SHARE = 18 * 2**30  # bytes of a GPU's memory for each run that shares it
PAPER_CORPORA = {"cnn_dailymail": "summarization cnn/dm", "nyt50": "summarization nyt50"}


def plans(setup: Setup, folder: Path) -> list[Plan]:
    """The plans of a scale; `folder` is where the runs go."""
    return {"smoke": _smoke, "gpu": _gpu, "paper": _paper}[setup.scale](setup, folder)


def encoder(setup: Setup) -> str | None:
    """The BERT that BertSum is to begin with, where one was given."""
    return setup.model if setup.model is not None and is_bert(setup.model) else None


def news_model(setup: Setup) -> str | None:
    """The causal LM for news: the model given, where it is no BERT."""
    return setup.model if setup.model is not None and not is_bert(setup.model) else None


def glimpse(seed: int = 0) -> Recipe:
    """A few steps of selection and writing, to see that all runs."""
    recipe = small(seed)
    assert recipe.selector is not None
    return replace(
        recipe,
        selector=replace(recipe.selector, max_steps=2, evaluate_every=2, dtype="float32"),
        writer=replace(recipe.writer, max_steps=10, evaluate_every=10, dtype="float32"),
        encoder=Noam(0.01, warmup=4),
        decoder=Noam(0.06, warmup=4),
        decoder_shape={"decoder_layers": 1, "decoder_inner": 64},
        source_tokens=None,
        min_new_tokens=4,
        new_tokens=12,
    )


def news_recipe(seed: int = 0) -> Recipe:
    """A causal LM on news: articles of 640 tokens, two epochs, 16 pairs a step."""
    recipe = finetune(seed)
    writer = replace(recipe.writer, epochs=2, batch=16, accumulation=1, learning_rate=5e-5, evaluate_every=28)
    return replace(recipe, writer=writer, source_tokens=640, new_tokens=110)


def paper_plan(setup: Setup, corpus: str, data: str) -> Plan:
    """BertSum on one of the paper's corpora with the paper's α, γ and β, which it chose on the validation set."""
    settings = SETTINGS[PAPER_CORPORA[corpus]]
    betas = {"mle": "MLE", "ul=0.5": "UL", "sg=0.8": "SG"}
    tasks = _tasks(encoder(setup) or PAPER_ENCODER, data, paper, setup.seeds or 1)
    return Plan(
        corpus,
        tasks,
        OBJECTIVES,
        _evaluation(tasks[0].recipe),
        choose=0,
        betas={objective: float(settings[row]["beta"]) for objective, row in betas.items()},  # type: ignore[arg-type]
    )


def _smoke(setup: Setup, folder: Path) -> list[Plan]:
    texts = (text for pair in scitldr("train")[:200] for text in (pair.text, *pair.references))
    model = encoder(setup) or save_small_bert(folder / "small-bert", texts)
    tasks = _tasks(model, "scitldr", glimpse, setup.seeds or 1, limit=16)
    how = _evaluation(tasks[0].recipe, betas=(0.0, 1.0), batch=4)
    return [Plan("abstracts", tasks, OBJECTIVES, how, choose=2, limit=4)]


def _gpu(setup: Setup, folder: Path) -> list[Plan]:
    tasks = _tasks(encoder(setup) or ENCODER, "scitldr", abstracts, setup.seeds or 3)
    how = _evaluation(tasks[0].recipe, batch=128)
    found = [Plan("abstracts", tasks, GRID, how, choose=60, processes=_processes(GRID))]
    model, held = news_model(setup), (folder / "news.json").exists()  # results need no model any more
    if held or ("news" in setup.data and model is not None):
        own = folder / "news-data"
        data = split_news(Path(setup.data["news"]), own) if "news" in setup.data else str(own)
        tasks = _tasks(unpacked(model or "", folder / "news-model"), data, news_recipe, 1)
        how = _evaluation(tasks[0].recipe, batch=64, dtype="bfloat16" if torch.cuda.is_available() else "auto")
        found.append(Plan("news", tasks, NEWS_OBJECTIVES, how, choose=50, processes=_processes(NEWS_OBJECTIVES)))
    return found


def _paper(setup: Setup, folder: Path) -> list[Plan]:
    found = [paper_plan(setup, "cnn_dailymail", setup.data.get("cnn_dailymail", "cnn_dailymail"))]
    if "nyt50" in setup.data:
        found.append(paper_plan(setup, "nyt50", setup.data["nyt50"]))
    return found


def _processes(objectives: Sequence[str]) -> int:
    """Runs at a time: one of these models alone leaves a GPU idle most of the time, and fills a CPU."""
    return gpu_shares(_SHARE, len(objectives)) if torch.cuda.is_available() else 1


def _tasks(model: str, data: str, recipe: Any, seeds: int, limit: int | None = None) -> tuple[Task, ...]:
    return tuple(Task(model, data=data, recipe=_quiet(recipe(seed)), limit=limit) for seed in range(seeds))


def _evaluation(recipe: Recipe, **others: Any) -> Evaluation:
    """As the recipe decodes; MoverScore comes later, for all at once."""
    return Evaluation.of(recipe.record(), mover=False, **others)


def _quiet(recipe: Recipe) -> Recipe:
    selector = recipe.selector and replace(recipe.selector, tracker=())
    return replace(recipe, selector=selector, writer=replace(recipe.writer, tracker=()))


def unpacked(model: str, folder: Path) -> str:
    """A GGUF file as a folder, once for all processes; any other model as it is."""
    if Path(model).suffix != ".gguf":
        return model
    unpack(model, folder)
    return str(folder)


def split_news(source: Path, folder: Path, validation: int = NEWS_VALIDATION) -> str:
    """A folder of splits: of `source`'s training pairs the last `validation` to choose by; its test set for testing.

    Without training files its validation files are what is trained on: a part of a corpus is often only those.
    """
    files = split_files(source, "train") or split_files(source, "validation")
    found = [pair for file in files for pair in read_pairs(file)]
    held = [pair for file in split_files(source, "test") for pair in read_pairs(file)]
    if not held:
        raise ValueError(f"news: {source} has no file for test, such as test.jsonl or test.csv.xz")
    if len(found) <= validation:
        raise ValueError(
            f"news: {source} has {len(found)} pairs to train on, and {validation} of them are to choose by"
        )
    parts = {"train": found[:-validation], "validation": found[-validation:], "test": held}
    for name, kept in parts.items():
        _write_pairs(folder / f"{name}.jsonl", kept)
    return str(folder)


def _write_pairs(path: Path, pairs: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, [{"id": p.id, "source": list(p.source), "references": list(p.references)} for p in pairs])
