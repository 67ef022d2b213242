"""Does a γ that looks at the context do better than a constant one? A small experiment on one CPU core.

    pip install "scalegrad[measure]"
    python examples/dynamic_gamma.py

A small LSTM learns WikiText-2 by maximum likelihood; copies of it are then trained on with ScaleGrad under each γ of
GAMMAS, three seeds each. Reported on WikiText-103's validation text: perplexity, and how repetitive greedy continuations
are. docs/gamma.md shows what came out.
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
from scalegrad.gamma import Dynamic
from scalegrad.metrics import repetition


def gentle_when_unsure(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ from .2 where the model is sure of the next token to 1 where 5 nats of entropy leave it open."""
    return (entropy / 5).clamp(0.2, 1.0)


def firm_on_repeats(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ falls from 1 to .2 with the probability the model gives to tokens it has used already."""
    return (1 - seen_mass).clamp(0.2, 1.0)


GAMMAS: dict[str, float | Dynamic] = {
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


def tune(base: SmallLM, gamma: float | Dynamic, ids: Tensor, seed: int, args: argparse.Namespace) -> SmallLM:
    """A copy of the base, trained on with ScaleGrad; the seed decides the batches and the dropout."""
    model = copy.deepcopy(base)
    torch.manual_seed(seed)
    train(
        model, ScaleGradLoss(gamma), batches(ids, args.batch, args.length, args.tune_steps, seed), args.tune_steps, 1e-3
    )
    return model


def figures(model: SmallLM, held_out: Tensor, tokenizer: tokenizers.Tokenizer) -> dict[str, float]:
    """Perplexity of the held-out chunks, repetition of greedy continuations (100 tokens) of their first 50 tokens."""
    told = repetition(tokenizer.decode_batch(greedy(model, held_out[:, :50], 100).tolist()))
    return {"ppl": perplexity(model, held_out)} | {key: told[key] for key in ("rep_1", "rep_3", "uniq_w")}


def print_table(runs: list[dict[str, dict[str, float]]]) -> None:
    columns = {"ppl": ".1f", "rep_1": ".3f", "rep_3": ".3f", "uniq_w": ".0f"}
    print("| γ | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name in GAMMAS:
        cells = []
        for key, form in columns.items():
            values = [run[name][key] for run in runs]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{statistics.mean(values):{form}} ± {spread:{form}}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main(argv: list[str] | None = None) -> list[dict[str, dict[str, float]]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"seeds": 3, "steps": 3000, "tune_steps": 300, "batch": 8, "length": 128, "width": 192, "vocab": 2048}
    for name, size in (sizes | {"prefixes": 100, "characters": 12_000_000}).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size)
    args = parser.parse_args(argv)

    text = wikitext2()[: args.characters]
    tokenizer = train_tokenizer(text, args.vocab)
    ids = torch.tensor(tokenizer.encode(text).ids)
    valid = torch.tensor(tokenizer.encode(wikitext103("valid")[: args.prefixes * 800]).ids)
    held_out = valid[: args.prefixes * 150].view(-1, 150)
    print(f"{len(ids):,} training tokens, {held_out.numel():,} held out")

    start = time.perf_counter()
    torch.manual_seed(0)
    base = SmallLM(args.vocab, args.width)
    train(base, ScaleGradLoss(1.0), batches(ids, args.batch, args.length, args.steps, 0), args.steps, 3e-3)
    print("base", figures(base, held_out, tokenizer), flush=True)
    runs: list[dict[str, dict[str, float]]] = []
    for seed in range(1, args.seeds + 1):
        runs.append({})
        for name, gamma in GAMMAS.items():
            runs[-1][name] = figures(tune(base, gamma, ids, seed, args), held_out, tokenizer)
            print(f"seed {seed}, {name}:", runs[-1][name], flush=True)
    print(f"{time.perf_counter() - start:.0f} s")
    print_table(runs)
    return runs


if __name__ == "__main__":
    main()
