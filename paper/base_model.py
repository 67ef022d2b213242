"""How base models are made: `python -m paper.base_model --wikipedia enwik8.gz --books books.txt.xz`.

GPT-2-shaped models, trained on Wikipedia prose and public-domain books with WikiText's spacing; WikiText itself is left
out, so that fine-tuning on it has something to teach. The recipe "base" made the model that ships, with an 8,192-token
byte-level BPE; "small" makes one of GPT-2 small's shape with GPT-2's own BPE, for the experiments on a GPU. They want a
GPU: some minutes there, days on a CPU. Each stage leaves its file in the work folder and is not done again.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paper.prose import as_wikitext, book_prose, wikipedia_prose
from paper.saved_model import save_whole
from scalegrad.data import encode_corpus, gpt2_tokenizer, read_texts, wikitext2, wikitext103
from scalegrad.extras import need
from scalegrad.runs import environment, replacing

END = "<|endoftext|>"
CORPORA = ("wikipedia", "books")
Ids: TypeAlias = NDArray[np.uint16]


@dataclass(frozen=True)
class BaseRecipe:
    """Shape and training of a base model; the defaults are those of the one that ships.

    With `minutes` training ends after so many, however many steps these were (`steps` at most), and the learning rate
    follows the clock. `dtype` is what the weights are stored in.
    """

    vocab: int = 8192
    tokenizer: str = "trained"  # on the corpora, or "gpt2"
    width: int = 256
    layers: int = 4
    heads: int = 4
    context: int = 1024
    steps: int = 7500
    batch: int = 128  # sequences of `context` tokens
    learning_rate: float = 2e-3
    final_learning_rate: float = 2e-5
    warmup: int = 200
    weight_decay: float = 0.1
    wikipedia_share: float = 0.6  # of the sequences; the books are twice as long and further from WikiText
    seed: int = 1
    minutes: float | None = None
    dtype: str = "bfloat16"

    def __post_init__(self) -> None:
        if self.tokenizer not in ("trained", "gpt2"):
            raise ValueError(f"tokenizer must be trained or gpt2, not {self.tokenizer!r}")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"minutes must be more than 0, not {self.minutes!r}")


# Small: 252 million tokens, 9 minutes on an H200.
RECIPES = {
    "base": BaseRecipe(),
    "small": BaseRecipe(
        vocab=50_257, tokenizer="gpt2", width=768, layers=12, heads=12, steps=7700, batch=32, learning_rate=8e-4,
        final_learning_rate=8e-5, dtype="float32",
    ),
}  # fmt: skip


def corpora(work: Path, wikipedia: Path | None, books: Path | None) -> dict[str, str]:
    """The two corpora in WikiText's form, made once and kept in `work`."""

    def kept(name: str, paragraphs: Iterator[str]) -> str:
        path = work / f"{name}.txt.xz"
        if not path.exists():
            with replacing(path) as unfinished:
                unfinished.write_bytes(lzma.compress(as_wikitext(paragraphs).encode()))
        return lzma.decompress(path.read_bytes()).decode()

    def lines(path: Path | None, name: str) -> Iterator[str]:
        if path is None:
            raise ValueError(f"--{name} FILE is needed: {work} does not hold {name}.txt.xz yet")
        return read_texts(str(path), format="txt")

    def articles() -> Iterator[str]:
        yield from wikipedia_prose("\n".join(lines(wikipedia, "wikipedia")))

    def chapters() -> Iterator[str]:
        yield from book_prose(lines(books, "books"))

    return {"wikipedia": kept("wikipedia", articles()), "books": kept("books", chapters())}


def train_tokenizer(texts: Iterator[str], vocab: int) -> Any:
    """A byte-level BPE of `vocab` tokens, the last of them the end symbol, as a transformers tokenizer."""
    tokenizers = need("tokenizers", extra="hf")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab - 1, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([END])
    fast = need("transformers", extra="hf").PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, bos_token=END, eos_token=END, clean_up_tokenization_spaces=False)


def gpt2_bpe() -> Any:
    """GPT-2's own byte-level BPE as a transformers tokenizer."""
    fast = need("transformers", extra="hf").PreTrainedTokenizerFast
    return fast(tokenizer_object=gpt2_tokenizer(), bos_token=END, eos_token=END, clean_up_tokenization_spaces=False)


def prepared(work: Path, wikipedia: Path | None, books: Path | None, recipe: BaseRecipe) -> tuple[Any, dict[str, Ids]]:
    """The tokenizer and the ids of each corpus, made once and kept in `work`.

    Files that are there are taken: tokenizer/, and of each corpus NAME.npy, NAME.npy.xz (ids) or NAME.txt.xz (text).
    """
    kept, stored = work / "tokenizer", {name: work / f"{name}.npy" for name in CORPORA}
    for path in stored.values():
        packed = path.with_suffix(".npy.xz")
        if packed.exists() and not path.exists():
            with replacing(path) as unfinished:
                unfinished.write_bytes(lzma.decompress(packed.read_bytes()))
    if not kept.exists() and recipe.tokenizer == "gpt2":
        save_whole(kept, gpt2_bpe())
    texts = {} if kept.exists() and all(path.exists() for path in stored.values()) else corpora(work, wikipedia, books)
    if not kept.exists():
        samples = (*texts.values(), wikitext2())  # WikiText's <unk> and headings get tokens of their own
        lines = (line for text in samples for line in text.splitlines(keepends=True))
        save_whole(kept, train_tokenizer(lines, recipe.vocab))
    tokenizer = need("transformers", extra="hf").PreTrainedTokenizerFast.from_pretrained(kept)
    for name, path in stored.items():
        if not path.exists():
            with replacing(path) as unfinished, unfinished.open("wb") as file:
                np.save(file, encode_corpus(texts[name], tokenizer).astype(np.uint16))
    return tokenizer, {name: np.load(path) for name, path in stored.items()}


def learning_rate(recipe: BaseRecipe, step: int, share: float | None = None) -> float:
    """A line up over the warm-up, half a cosine down over the rest; `share` is how much of the minutes is gone.

    >>> recipe = BaseRecipe(steps=1000, warmup=100, learning_rate=1.0, final_learning_rate=0.0)
    >>> [round(learning_rate(recipe, step), 3) for step in (0, 99, 550, 1000)]
    [0.01, 1.0, 0.5, 0.0]
    >>> round(learning_rate(recipe, 300, share=0.5), 3)
    0.5
    """
    if step < recipe.warmup:
        return recipe.learning_rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / (recipe.steps - recipe.warmup)
    shape = (1 + math.cos(math.pi * min(max(done, share or 0.0), 1.0))) / 2
    return recipe.final_learning_rate + (recipe.learning_rate - recipe.final_learning_rate) * shape


def new_model(recipe: BaseRecipe, end: int) -> Any:
    """GPT-2's shape, small; without dropout, as it sees its text few times."""
    hf = need("transformers", extra="hf")
    none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = hf.GPT2Config(
        vocab_size=recipe.vocab,
        n_positions=recipe.context,
        n_embd=recipe.width,
        n_layer=recipe.layers,
        n_head=recipe.heads,
        activation_function="gelu_pytorch_tanh",  # GPT-2's gelu_new, in one kernel
        bos_token_id=end,
        eos_token_id=end,
        **none,
    )
    return hf.GPT2LMHeadModel(config)


def pretrain(recipe: BaseRecipe, ids: dict[str, Ids], end: int, log: Path) -> Any:
    """The model after `recipe.steps` steps on random windows of the corpora."""
    torch.manual_seed(recipe.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = new_model(recipe, end).to(device)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=device.type == "cuda")
    stored = [torch.from_numpy(ids[name].astype(np.int16)).to(device) for name in CORPORA]
    generator = torch.Generator(device).manual_seed(recipe.seed)

    @torch.compile(disable=device.type == "cpu")
    def loss_of(window: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(input_ids=window[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), window[:, 1:].flatten())

    started = time.perf_counter()
    for step in range(recipe.steps):
        share = None if recipe.minutes is None else (time.perf_counter() - started) / (60 * recipe.minutes)
        last = step + 1 == recipe.steps or (share is not None and share >= 1)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step, share)
        loss = loss_of(_windows(stored, recipe, generator))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 99 or last:
            line = {"step": step + 1, "loss": round(loss.item(), 4), "seconds": round(time.perf_counter() - started, 1)}
            print(line, flush=True)
            with log.open("a") as file:
                file.write(json.dumps(line) + "\n")
        if last:
            break
    return model


def _windows(stored: list[Tensor], recipe: BaseRecipe, generator: torch.Generator) -> Tensor:
    """[batch, context + 1] random windows: the first of them of Wikipedia, as many as its share says."""
    steps = torch.arange(recipe.context + 1, device=stored[0].device)
    of_wikipedia = round(recipe.batch * recipe.wikipedia_share)
    windows = []
    for ids, count in zip(stored, (of_wikipedia, recipe.batch - of_wikipedia), strict=True):
        start = torch.randint(len(ids) - recipe.context, (count, 1), device=ids.device, generator=generator)
        windows.append(ids[start + steps].long() & 0xFFFF)
    return torch.cat(windows)


@torch.no_grad()
def validation_perplexity(model: Any, tokenizer: Any) -> float:
    """On the WikiText-103 validation text, in windows of the model's context."""
    ids = torch.from_numpy(encode_corpus(wikitext103("valid"), tokenizer).astype(np.int64))
    context = model.config.n_positions
    chunks = ids[: len(ids) // context * context].view(-1, context).to(model.device)
    return math.exp(sum(model(input_ids=chunk[None], labels=chunk[None]).loss.item() for chunk in chunks) / len(chunks))


def make(recipe: BaseRecipe, work: Path, out: Path, wikipedia: Path | None = None, books: Path | None = None) -> Path:
    """Every stage, into the model folder `out`; what `work` holds already is taken from there."""
    work.mkdir(parents=True, exist_ok=True)
    tokenizer, ids = prepared(work, wikipedia, books, recipe)
    print({name: len(values) for name, values in ids.items()}, flush=True)
    log = work / "log.jsonl"
    log.unlink(missing_ok=True)
    model = pretrain(recipe, ids, tokenizer.eos_token_id, log)
    if torch.cuda.is_available():
        torch.compiler.reset()  # what was compiled would keep the weights in memory
    found = {"validation_perplexity": round(validation_perplexity(model.eval(), tokenizer), 2)}
    print(found, flush=True)
    trained = json.loads(log.read_text().splitlines()[-1])
    made: dict[str, Any] = {"recipe": asdict(recipe), "corpora": {name: len(values) for name, values in ids.items()}}
    made |= {"trained": trained, **found, "environment": environment()}
    save_whole(out, model.to(getattr(torch, recipe.dtype)), tokenizer, recipe=made)
    return out


def main(arguments: list[str] | None = None) -> None:
    """A base model by its recipe's name."""
    parser = argparse.ArgumentParser(description="Pre-train a base model.")
    parser.add_argument("--recipe", choices=list(RECIPES), default="base", help="base: the one that ships")
    parser.add_argument("--wikipedia", type=Path, help="a Wikipedia XML dump, such as enwik8, plain or .gz")
    parser.add_argument("--books", type=Path, help="plain-text books, plain, .gz or .xz")
    parser.add_argument("--work", type=Path, default=Path("base-model"), help="where the stages' files go")
    parser.add_argument("--out", type=Path, help="folder for the model (default: WORK/model)")
    parser.add_argument("--steps", type=int, help="at most; the recipe's own by default")
    parser.add_argument("--batch", type=int, help="sequences a step; the recipe's own by default")
    parser.add_argument("--minutes", type=float, help="stop after so many, the learning rate following the clock")
    chosen = parser.parse_args(arguments)
    recipe = RECIPES[chosen.recipe]
    steps = chosen.steps or recipe.steps
    recipe = replace(
        recipe, steps=steps, batch=chosen.batch or recipe.batch, warmup=min(recipe.warmup, steps // 2),
        minutes=chosen.minutes,
    )  # fmt: skip
    make(recipe, chosen.work, chosen.out or chosen.work / "model", chosen.wikipedia, chosen.books)


if __name__ == "__main__":
    main()
