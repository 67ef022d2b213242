"""When repeating is right: what ScaleGrad costs on code, tables and lists of names. Two minutes on two CPU cores.

    pip install "scalegrad[complete]"
    python examples/must_repeat.py

The base model that ships with the package is fine-tuned three times, by likelihood and by ScaleGrad with γ = .8 and .2,
on equal parts of four kinds of text: prose (WikiText), Python code (the standard library of the Python that runs this),
a table and roll calls (both made up here). Held-out text of each kind is then predicted token by token, by the three
models and by the MLE model under the decoding-time penalty of γ = .2. docs/when-not.md shows what came out.
"""

from __future__ import annotations

import argparse
import math
import random
import sysconfig
import time
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoTokenizer, GPT2LMHeadModel, PreTrainedTokenizerBase

from scalegrad import ScaleGradLoss
from scalegrad.data import wikitext2, wikitext103
from scalegrad.integrations import hf
from scalegrad.models import base

GAMMAS = {"MLE": 1.0, "SG γ=0.8": 0.8, "SG γ=0.2": 0.2}
PENALTY = 0.2  # of the MLE model decoded with ScaleGrad's twin
LENGTH = 256  # tokens a sequence

# ---- texts; `split` is "train" or "test" -----------------------------------------------------------------------------

HELD_OUT = ("heapq", "textwrap", "shutil", "statistics", "csv", "fractions", "calendar", "cmd")
MODULES = ("argparse", "ast", "bdb", "configparser", "datetime", "difflib", "doctest", "enum", "functools", "gettext")


def prose(split: str) -> str:
    text = wikitext2() if split == "train" else wikitext103("valid")
    return "\n".join(line for line in text.split("\n") if len(line) > 200 and "<unk>" not in line)[:800_000]


def code(split: str) -> str:
    folder = Path(sysconfig.get_paths()["stdlib"])
    return "\n".join((folder / f"{name}.py").read_text() for name in (MODULES if split == "train" else HELD_OUT))


def table(split: str) -> str:
    """A year of weather in five towns: the same towns, winds and skies again and again."""
    draw = random.Random(split)
    towns = {town: draw.randint(-5, 20) for town in ("Bergen", "Lisbon", "Geneva", "Dublin", "Athens")}
    lines = ["date , town , wind , degrees , sky"]
    for day in range(800):
        for town, warmth in towns.items():
            wind, sky = draw.choice(("north", "east", "south", "west")), draw.choice(("clear", "cloud", "rain"))
            lines.append(f"day {day} , {town} , {wind} , {warmth + draw.randint(-2, 2)} , {sky}")
    return "\n".join(lines)


NAMES = (
    "Anna Ben Clara David Emma Felix Greta Henry Ida Jonas Karl Lena Max Nora Otto Paula Rosa Simon Tom Vera",
    "Baker Carter Dyer Fisher Gardener Hunter Mason Miller Porter Potter Shepherd Smith Tanner Taylor Weaver",
)


def roll_calls(split: str) -> str:
    """Eight people, read out on four days: all but the first reading is a repeat, word for word."""
    draw, (first, last) = random.Random(split), map(str.split, NAMES)
    calls = []
    for _ in range(400):
        people = " , ".join(f"{draw.choice(first)} {draw.choice(last)}" for _ in range(8))
        calls += [f"{day} : {people} ." for day in ("Monday", "Tuesday", "Wednesday", "Thursday")] + [""]
    return "\n".join(calls)


KINDS = {"prose": prose, "Python code": code, "table": table, "roll calls": roll_calls}


def sequences(kind: str, split: str, count: int, tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """`count` sequences of LENGTH tokens, evenly spread over the text, [count, LENGTH]."""
    ids = torch.tensor(tokenizer(KINDS[kind](split), verbose=False)["input_ids"])
    rows = ids[: len(ids) // LENGTH * LENGTH].view(-1, LENGTH)
    return rows[torch.linspace(0, len(rows) - 1, count).long()]


# ---- training and scoring --------------------------------------------------------------------------------------------


def train(gamma: float, rows: dict[str, Tensor], steps: int, batch: int, seed: int) -> GPT2LMHeadModel:
    torch.manual_seed(seed)  # the same batches for every γ
    model = hf.attach(GPT2LMHeadModel.from_pretrained(base.path(), dtype=torch.float32).train(), ScaleGradLoss(gamma))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    for _ in range(steps):
        ids = torch.cat([kind[torch.randint(len(kind), (batch,))] for kind in rows.values()])
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return hf.detach(model).eval()


@torch.no_grad()
def figures(model: GPT2LMHeadModel, ids: Tensor, penalty: float = 1.0) -> dict[str, float]:
    """Perplexity and share of right predictions; the latter also for targets that repeat a token of the sequence."""
    nll, right, again = [], [], []
    for row in ids:
        read, targets = row[:-1], row[1:]
        logits = model(input_ids=read[None]).logits[0]  # [T, V]
        seen = torch.nn.functional.one_hot(read, logits.shape[-1]).cumsum(0) > 0
        logits = logits + math.log(penalty) * seen
        nll.append(torch.nn.functional.cross_entropy(logits, targets))
        right.append(logits.argmax(-1) == targets)
        again.append(seen.gather(1, targets[:, None])[:, 0])
    hits, repeats = torch.cat(right), torch.cat(again)
    return {
        "ppl": float(torch.stack(nll).mean().exp()),
        "right": float(hits.float().mean()),
        "right where it repeats": float(hits[repeats].float().mean()),
        "repeats": float(repeats.float().mean()),
    }


def main(argv: list[str] | None = None) -> dict[str, dict[str, dict[str, float]]]:
    """{kind of text: {system: figures}}, also printed as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, size in {"steps": 60, "batch": 2, "train": 200, "test": 24, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    args = parser.parse_args(argv)

    start, tokenizer = time.perf_counter(), AutoTokenizer.from_pretrained(base.path())
    training = {kind: sequences(kind, "train", args.train, tokenizer) for kind in KINDS}
    held_out = {kind: sequences(kind, "test", args.test, tokenizer) for kind in KINDS}
    models = {name: train(gamma, training, args.steps, args.batch, args.seed) for name, gamma in GAMMAS.items()}
    systems = [(name, model, 1.0) for name, model in models.items()]
    systems.append((f"MLE, decoded with γ={PENALTY}", models["MLE"], PENALTY))
    told = {
        kind: {name: figures(model, ids, penalty) for name, model, penalty in systems} for kind, ids in held_out.items()
    }
    print(f"{time.perf_counter() - start:.0f} s")
    for kind, rows in told.items():
        print(f"\n{kind}: {rows['MLE']['repeats']:.0%} of the tokens repeat one of their sequence\n")
        print("| | perplexity | right | right where it repeats |\n|---|---:|---:|---:|")
        for name, got in rows.items():
            print(f"| {name} | {got['ppl']:.2f} | {got['right']:.1%} | {got['right where it repeats']:.1%} |")
    return told


if __name__ == "__main__":
    main()
