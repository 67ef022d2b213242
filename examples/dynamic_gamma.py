"""Does a γ that looks at the context do better than a constant one? A small experiment on one CPU core.

    pip install "scalegrad[measure]"
    python examples/dynamic_gamma.py

A Transformer of two layers learns little stories that a grammar writes: words of content hardly ever come twice in a
story, articles, names and full stops do. Each γ of GAMMAS trains its own model, with three seeds. Reported on stories
the models have not seen: perplexity, how repetitive greedy continuations are, and how many of their sentences the
grammar could have written. docs/gamma.md shows what came out.
"""

from __future__ import annotations

import argparse
import random
import time

import torch
from torch import Tensor, nn

from scalegrad import ScaleGradLoss
from scalegrad.gamma import Dynamic
from scalegrad.metrics import repetition

# ---- γ ---------------------------------------------------------------------------------------------------------------


def gentle_when_unsure(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ from .2 where the model is sure of the next word to 1 where 4 nats of entropy leave it open."""
    return (entropy / 4).clamp(0.2, 1.0)


def gentle_when_sure(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """The reverse: from 1 where the model is sure (an article, a full stop) to .2 where the choice is open."""
    return (1 - entropy / 4).clamp(0.2, 1.0)


def firm_on_repeats(position: Tensor, entropy: Tensor, seen_mass: Tensor) -> Tensor:
    """γ from 1 down to .2 as more probability goes to what was already said."""
    return (1 - seen_mass).clamp(0.2, 1.0)


GAMMAS: dict[str, float | Dynamic] = {
    "1 (MLE)": 1.0,
    "0.5": 0.5,
    "0.3": 0.3,
    "0.2": 0.2,
    "gentle when unsure": gentle_when_unsure,
    "gentle when sure": gentle_when_sure,
    "firm on repeats": firm_on_repeats,
}

# ---- the stories -----------------------------------------------------------------------------------------------------

CONTENT = {
    "NAME": "anna ben clara david emma felix greta henry ida jonas karl lena max nora otto paula",
    "NOUN": "horse dog cat bird fox wolf boat cart lamp book letter hat coat apple plum cake rope stone ladder wheel "
    "clock mirror drum flute basket bottle candle ring key map kettle broom saddle blanket pencil button",
    "VERB": "found lost carried painted sold bought cleaned mended hid followed watched dropped pushed pulled washed "
    "counted wrapped opened closed kicked stole returned drew borrowed",
    "ADJ": "brown white old new small large heavy broken clean dusty round cold warm wet silver wooden green blue "
    "narrow quiet strange bright dark soft",
    "PLACE": "river market bridge garden station forest mill tower harbour school barn church cellar meadow castle inn",
}
CONTENT_WORDS = {kind: words.split() for kind, words in CONTENT.items()}
SENTENCES = [
    "NAME VERB the ADJ NOUN .",
    "the NOUN near the PLACE was ADJ .",
    "then NAME went to the PLACE and VERB a NOUN .",
    "in the PLACE , a ADJ NOUN was waiting .",
    "NAME said that the NOUN was too ADJ .",
    "after that , NAME VERB a ADJ NOUN at the PLACE .",
    "nobody VERB the NOUN , and the PLACE was ADJ .",
    "the ADJ NOUN belonged to NAME .",
]
KIND_OF = {word: kind for kind, words in CONTENT_WORDS.items() for word in words}
VOCABULARY = sorted({word for s in SENTENCES for word in s.split() if word not in CONTENT_WORDS} | set(KIND_OF))
INDEX = {word: i for i, word in enumerate(VOCABULARY)}


def story(source: random.Random, sentences: int = 14) -> list[str]:
    """Words of a story. A class's early words are likelier; content, once used, comes back one time in ten."""
    hero, used, words = source.choice(CONTENT_WORDS["NAME"]), set[str](), []
    for _ in range(sentences):
        for slot in source.choice(SENTENCES).split():
            choices = CONTENT_WORDS.get(slot, [slot])
            if slot == "NAME" and source.random() < 0.5:
                choices = [hero]
            elif len(choices) > 1 and source.random() > 0.1:
                choices = [word for word in choices if word not in used] or choices
            words.append(source.choices(choices, [1 / (rank + 2) for rank in range(len(choices))])[0])
            used.add(words[-1])
    return words


def well_formed(words: list[str]) -> float:
    """The share of whole sentences that the grammar could have written."""
    whole = " ".join(words[words.index(".") + 1 :] if "." in words else []).split(" .")[:-1]
    kinds = [" ".join(KIND_OF.get(word, word) for word in f"{sentence} .".split()) for sentence in whole]
    return sum(sentence in SENTENCES for sentence in kinds) / max(len(kinds), 1)


# ---- the model -------------------------------------------------------------------------------------------------------


class SmallLM(nn.Module):
    """A causal Transformer; the embedding is the output layer too."""

    def __init__(self, width: int, layers: int, longest: int) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(len(VOCABULARY), width), nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        nn.init.normal_(self.embedding.weight, std=0.05)
        nn.init.normal_(self.position.weight, std=0.05)

    def forward(self, ids: Tensor) -> Tensor:
        steps = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(steps)
        hidden = self.embedding(ids) + self.position(torch.arange(steps))
        return self.body(hidden, mask, is_causal=True) @ self.embedding.weight.T


def train(gamma: float | Dynamic, stories: Tensor, seed: int, args: argparse.Namespace) -> SmallLM:
    torch.manual_seed(seed)
    model = SmallLM(args.width, args.layers, stories.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, args.steps)
    loss = ScaleGradLoss(gamma)
    for _ in range(args.steps):
        batch = stories[torch.randint(len(stories), (args.batch,))]
        optimizer.zero_grad()
        loss(model(batch[:, :-1]), batch[:, 1:]).backward()  # the one line that differs from MLE
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def figures(model: SmallLM, held_out: Tensor, prefix: int) -> dict[str, float]:
    nll = nn.functional.cross_entropy(model(held_out[:, :-1]).flatten(0, 1), held_out[:, 1:].flatten())
    ids = held_out[:, :prefix]
    while ids.shape[1] < held_out.shape[1]:
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
    return {"ppl": float(nll.exp())} | of_texts(ids[:, prefix:])


def of_texts(ids: Tensor) -> dict[str, float]:
    texts = [[VOCABULARY[i] for i in row] for row in ids.tolist()]
    told = repetition([" ".join(text) for text in texts])
    share = sum(map(well_formed, texts)) / len(texts)
    return {"rep_1": told["rep_1"], "rep_2": told["rep_2"], "rep_3": told["rep_3"], "well_formed": share}


def print_table(human: dict[str, float], runs: list[dict[str, dict[str, float]]]) -> None:
    """Mean and standard deviation over the seeds."""
    print("| γ | " + " | ".join(runs[0]["1 (MLE)"]) + " |\n|---|" + "---|" * 5)
    for name in runs[0]:
        values = {key: torch.tensor([run[name][key] for run in runs]) for key in runs[0][name]}
        spread = {key: float(v.std()) if len(v) > 1 else 0.0 for key, v in values.items()}
        cells = [f"{float(v.mean()):.3f} ± {spread[key]:.3f}" for key, v in values.items()]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("| the stories themselves | | " + " | ".join(f"{value:.3f}" for value in human.values()) + " |")


def main(argv: list[str] | None = None) -> list[dict[str, dict[str, float]]]:
    """Train and measure; {name of a γ: figures} for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"seeds": 3, "steps": 500, "batch": 16, "length": 100, "prefix": 30, "width": 96, "layers": 2}
    for name, size in (sizes | {"stories": 4000, "held_out": 100}).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size)
    args = parser.parse_args(argv)

    source = random.Random(0)
    written = [story(source)[: args.length] for _ in range(args.stories + args.held_out)]
    ids = torch.tensor([[INDEX[word] for word in words] for words in written])
    stories, held_out = ids[args.held_out :], ids[: args.held_out]
    start = time.perf_counter()
    runs: list[dict[str, dict[str, float]]] = []
    for seed in range(args.seeds):
        runs.append({})
        for name, gamma in GAMMAS.items():
            runs[-1][name] = figures(train(gamma, stories, seed, args), held_out, args.prefix)
            print(f"seed {seed}, γ {name}:", runs[-1][name], flush=True)
    print(f"{time.perf_counter() - start:.0f} s, {len(VOCABULARY)} words, for example: {' '.join(written[0][:40])}")
    print_table(of_texts(held_out[:, args.prefix :]), runs)
    return runs


if __name__ == "__main__":
    main()
