"""Does a γ that looks at the context do better than a constant one? A small experiment on one CPU core.

    pip install "scalegrad[hf,measure]"
    python examples/dynamic_gamma.py

A GPT-2 of two layers learns WikiText-2 by maximum likelihood; copies of it are then trained on with ScaleGrad under
each γ of GAMMAS, three seeds each. Reported on WikiText-103's validation text: perplexity, and how repetitive greedy
continuations are. docs/gamma.md shows what came out.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator

import torch
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from scalegrad import ScaleGradLoss
from scalegrad.data import wikitext2, wikitext103
from scalegrad.gamma import Dynamic
from scalegrad.metrics import repetition

PREFIX, CONTINUATION = 50, 100  # tokens, as in the paper
Figures = dict[str, float]


def gentle_when_unsure(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ from .2 where the model is sure of the next token to 1 where 5 nats of entropy leave it open."""
    return (entropy / 5).clamp(0.2, 1.0)


def firm_on_repeats(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ from 1 down to .2 as more probability goes to what was already said."""
    return (1 - seen_mass).clamp(0.2, 1.0)


GAMMAS: dict[str, float | Dynamic] = {
    "1 (MLE)": 1.0,
    "0.5": 0.5,
    "0.2": 0.2,
    "by entropy": gentle_when_unsure,
    "by seen mass": firm_on_repeats,
}


def sentences(text: str) -> list[str]:
    """The sentences that have no `<unk>`: a model this small would say little else."""
    return [s.strip() + " ." for s in text.replace("\n", " ").split(" . ") if s.strip() and "<unk>" not in s]


def batches(ids: Tensor, steps: int, seed: int, args: argparse.Namespace) -> Iterator[Tensor]:
    """`steps` random batches [batch, length + 1]."""
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(ids) - args.length, (args.batch, 1), generator=random)
        yield ids[starts + torch.arange(args.length + 1)]


def train(model: nn.Module, loss: nn.Module, data: Iterator[Tensor], steps: int, peak: float) -> None:
    """AdamW, the learning rate falling in a straight line to a twentieth."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, max(steps, 1))
    model.train()
    for batch in data:
        optimizer.zero_grad()
        loss(model(batch[:, :-1]).logits, batch[:, 1:]).backward()  # the one line that differs from MLE
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def tune(base: nn.Module, gamma: float | Dynamic, ids: Tensor, seed: int, args: argparse.Namespace) -> nn.Module:
    """A copy of the base, trained on with ScaleGrad; the seed decides batches and dropout, the same for every γ."""
    model = copy.deepcopy(base)
    torch.manual_seed(seed)
    train(model, ScaleGradLoss(gamma), batches(ids, args.tune_steps, seed, args), args.tune_steps, peak=1e-3)
    return model


@torch.no_grad()
def figures(model: nn.Module, held_out: Tensor, tokenizer: ByteLevelBPETokenizer) -> Figures:
    """Perplexity of the held-out chunks, and repetition of greedy continuations of their beginnings."""
    model.eval()
    logits = model(held_out[:, :-1]).logits
    nll = nn.functional.cross_entropy(logits.flatten(0, 1), held_out[:, 1:].flatten())
    out = model.generate(held_out[:, :PREFIX], max_new_tokens=CONTINUATION, do_sample=False, pad_token_id=0)
    texts = tokenizer.decode_batch(out[:, PREFIX:].tolist())
    print("    ", texts[0][:150].replace("\n", " "))
    told = repetition(texts)
    return {"ppl": float(nll.exp())} | {key: float(told[key]) for key in ("rep_1", "rep_2", "rep_3", "uniq_w")}


def print_table(runs: list[dict[str, Figures]]) -> None:
    """Mean and standard deviation over the seeds."""
    columns = {"ppl": ".1f", "rep_1": ".3f", "rep_2": ".3f", "rep_3": ".3f", "uniq_w": ".0f"}
    print("| γ | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name in runs[0]:
        values = {key: torch.tensor([run[name][key] for run in runs]) for key in columns}
        spread = {key: float(v.std()) if len(v) > 1 else 0.0 for key, v in values.items()}
        cells = [f"{float(values[key].mean()):{form}} ± {spread[key]:{form}}" for key, form in columns.items()]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main(argv: list[str] | None = None) -> list[dict[str, Figures]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"seeds": 3, "steps": 2500, "tune_steps": 150, "batch": 8, "length": 128, "layers": 2, "width": 192}
    for name, size in (sizes | {"vocab": 2048, "prefixes": 100, "sentences": 100_000}).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size)
    args = parser.parse_args(argv)

    text, valid = (" ".join(sentences(part)[: args.sentences]) for part in (wikitext2(), wikitext103("valid")))
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([text], vocab_size=args.vocab, show_progress=False)
    ids, chunk = torch.tensor(tokenizer.encode(text).ids), PREFIX + CONTINUATION
    held_out = torch.tensor(tokenizer.encode(valid).ids[: args.prefixes * chunk]).view(-1, chunk)
    print(f"{len(ids):,} tokens to learn from, {held_out.numel():,} held out")

    start = time.perf_counter()
    torch.manual_seed(0)
    shape = {"vocab_size": args.vocab, "n_layer": args.layers, "n_embd": args.width, "n_head": 4, "n_positions": 256}
    base = GPT2LMHeadModel(GPT2Config(bos_token_id=None, eos_token_id=None, **shape))
    train(base, ScaleGradLoss(1.0), batches(ids, args.steps, 0, args), args.steps, peak=2e-3)
    print("base:", figures(base, held_out, tokenizer), flush=True)
    runs: list[dict[str, Figures]] = []
    for seed in range(1, args.seeds + 1):
        runs.append({})
        for name, gamma in GAMMAS.items():
            runs[-1][name] = figures(tune(base, gamma, ids, seed, args), held_out, tokenizer)
            print(f"seed {seed}, γ {name}:", runs[-1][name], flush=True)
    print(f"{time.perf_counter() - start:.0f} s")
    print_table(runs)
    return runs


if __name__ == "__main__":
    main()
