"""Does a γ that looks at the context do better than a constant one? A small experiment, about a quarter of an hour.

    pip install "scalegrad[measure]"
    python examples/dynamic_gamma.py

A small LSTM learns WikiText-2 by maximum likelihood; copies of it are then trained on with ScaleGrad under each γ below.
Reported on WikiText-103's validation text: perplexity, and how repetitive greedy continuations are. `docs/gamma.md`
shows what came out.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Iterator

import tokenizers
import torch
from torch import Tensor, nn

from scalegrad import ScaleGradLoss
from scalegrad.data import wikitext2, wikitext103
from scalegrad.metrics import repetition


def gentle_when_unsure(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ from .2 where the model is sure of the next token to 1 where 5 nats of entropy leave it open."""
    return (entropy / 5).clamp(0.2, 1.0)


def firm_on_repeats(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ falls from 1 to .2 with the probability the model gives to tokens it has used already."""
    return (1 - seen_mass).clamp(0.2, 1.0)


GAMMAS = {
    "γ = 1 (MLE)": 1.0,
    "γ = 0.5": 0.5,
    "γ = 0.2": 0.2,
    "by entropy": gentle_when_unsure,
    "by seen mass": firm_on_repeats,
}


class SmallLM(nn.Module):
    """Two LSTM layers; the embedding is the output layer too."""

    def __init__(self, vocab: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def forward(self, ids: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        hidden, state = self.lstm(self.embedding(ids), state)
        return hidden @ self.embedding.weight.T, state


def batches(ids: Tensor, size: int, length: int, steps: int, seed: int) -> Iterator[Tensor]:
    """`steps` random batches [size, length + 1]."""
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(ids) - length, (size, 1), generator=random)
        yield ids[starts + torch.arange(length + 1)]


def train(model: SmallLM, loss: nn.Module, data: Iterator[Tensor], steps: int, peak: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, steps)
    model.train()
    for batch in data:
        logits, _ = model(batch[:, :-1])
        optimizer.zero_grad()
        loss(logits, batch[:, 1:]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.no_grad()
def perplexity(model: SmallLM, chunks: Tensor) -> float:
    model.eval()
    logits, _ = model(chunks[:, :-1])
    return float(nn.functional.cross_entropy(logits.flatten(0, 1), chunks[:, 1:].flatten()).exp())


@torch.no_grad()
def greedy(model: SmallLM, prefixes: Tensor, length: int) -> Tensor:
    model.eval()
    logits, state = model(prefixes)
    out = [logits[:, -1:].argmax(-1)]
    while len(out) < length:
        logits, state = model(out[-1], state)
        out.append(logits.argmax(-1))
    return torch.cat(out, 1)


def train_tokenizer(text: str, vocab: int) -> tokenizers.Tokenizer:
    """A small byte-level BPE of our own, so that the output layer stays small."""
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(text.splitlines(), vocab_size=vocab, special_tokens=["<unk>"], show_progress=False)
    return tokenizer


def run(seed: int, args: argparse.Namespace, ids: Tensor, held_out: Tensor, tokenizer: tokenizers.Tokenizer) -> dict:
    """{name of a γ: its figures} for one seed."""
    torch.manual_seed(seed)
    base = SmallLM(args.vocab, args.width)
    data = batches(ids, args.batch, args.length, args.steps, seed)
    train(base, ScaleGradLoss(1.0), data, args.steps, peak=3e-3)
    results = {}
    for name, gamma in GAMMAS.items():
        model = copy.deepcopy(base)
        torch.manual_seed(seed)
        data = batches(ids, args.batch, args.length, args.tune_steps, seed + 1000)
        train(model, ScaleGradLoss(gamma), data, args.tune_steps, peak=1e-3)
        texts = tokenizer.decode_batch(greedy(model, held_out[:, :50], 100).tolist())
        told = repetition(texts)
        results[name] = {"ppl": perplexity(model, held_out)} | {key: told[key] for key in ("rep_1", "rep_3", "uniq_w")}
        print(f"seed {seed}  {name:14s}", {key: round(value, 3) for key, value in results[name].items()}, flush=True)
    return results


def print_table(runs: list[dict]) -> None:
    columns = {"ppl": ".1f", "rep_1": ".3f", "rep_3": ".3f", "uniq_w": ".0f"}
    print("| γ | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name in GAMMAS:
        cells = []
        for key, form in columns.items():
            values = [run[name][key] for run in runs]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{statistics.mean(values):{form}} ± {spread:{form}}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main(argv: list[str] | None = None) -> list[dict]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"seeds": 3, "steps": 600, "tune_steps": 200, "batch": 8, "length": 128, "width": 192, "vocab": 2048}
    for name, size in (sizes | {"prefixes": 100, "characters": 4_000_000}).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size)
    args = parser.parse_args(argv)

    text = wikitext2()[: args.characters]
    tokenizer = train_tokenizer(text, args.vocab)
    ids = torch.tensor(tokenizer.encode(text).ids)
    valid = torch.tensor(tokenizer.encode(wikitext103("valid")[: args.prefixes * 800]).ids)
    held_out = valid[: args.prefixes * 150].view(-1, 150)
    print(f"{len(ids):,} training tokens, {held_out.numel():,} held out")
    start = time.perf_counter()
    runs = [run(seed, args, ids, held_out, tokenizer) for seed in range(args.seeds)]
    print(f"{time.perf_counter() - start:.0f} s")
    print_table(runs)
    return runs


if __name__ == "__main__":
    main()
