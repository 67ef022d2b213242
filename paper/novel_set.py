"""The paper's picture of the novel set: how it shrinks along a sentence."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.results.figure import BLUE, GREY, INK, VERMILLION, new_figure
from scalegrad.sets import History, Seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST_DRAWN = 60  # tokens: more cannot be read in a picture


@dataclass(frozen=True)
class Step:
    """One step of the sentence: what is to be predicted, and what was said before."""

    target: str
    target_id: int
    is_novel: bool
    n_seen: int
    n_novel: int
    seen: list[int]  # ids, in order of first use


@dataclass(frozen=True)
class NovelSet:
    """The novel set at every step of a sentence, over a vocabulary of `vocab` tokens."""

    vocab: int
    window: int | None
    steps: list[Step]


def split_words(sentence: str) -> list[str]:
    """The words of a sentence, punctuation at a word's edges apart.

    >>> split_words("The horses, it's said, are brown.")
    ['The', 'horses', ',', "it's", 'said', ',', 'are', 'brown', '.']
    """
    return [word for piece in sentence.split() for word in _peel(piece)]


def _peel(piece: str) -> Iterator[str]:
    marks = [unicodedata.category(sign).startswith("P") for sign in piece]
    first = marks.index(False) if False in marks else len(piece)
    last = len(piece) - marks[::-1].index(False) if False in marks else len(piece)
    yield from piece[:first]
    if first < last:
        yield piece[first:last]
    yield from piece[last:]


def novel_set(words: Sequence[str], window: int | None = None) -> NovelSet:
    """Along a sentence of words, whose vocabulary is its own distinct words.

    >>> [(step.target, step.is_novel, step.n_novel) for step in novel_set(["to", "be", "or", "not", "to", "be"]).steps]
    [('to', True, 4), ('be', True, 3), ('or', True, 2), ('not', True, 1), ('to', False, 0), ('be', False, 0)]
    """
    ids = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return novel_set_of_ids([ids[word] for word in words], words, len(ids), window)


def novel_set_of_tokens(sentence: str, tokenizer: str | Path, window: int | None = None) -> NovelSet:
    """Along the tokens of a sentence, by the tokenizer saved in the folder `tokenizer`."""
    loaded = _load_tokenizer(tokenizer)
    ids = loaded.encode(sentence, add_special_tokens=False)
    return novel_set_of_ids(ids, [loaded.decode([i]) for i in ids], len(loaded), window)


def _load_tokenizer(folder: str | Path) -> Any:
    if not Path(folder).is_dir():
        raise ValueError(f"tokenizer must be a folder that holds a saved tokenizer, not {str(folder)!r}")
    transformers = need("transformers", extra="hf")
    try:
        return transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as problem:
        raise ValueError(f"tokenizer: {str(folder)!r} holds no tokenizer that transformers can load") from problem


def novel_set_of_ids(ids: Sequence[int], names: Sequence[str], vocab: int, window: int | None = None) -> NovelSet:
    """Along ids, `names[t]` being what to call `ids[t]`: what `Seen(window)` gives at each step."""
    if not ids:
        raise ValueError("sentence must have at least one word; it is empty")
    arrivals = torch.tensor([[-1, *ids[:-1]]])  # a target counts from the step after it
    members = Seen(window=window).compact(History(arrivals, vocab))
    assert members is not None
    name = dict(zip(ids, names, strict=True))
    place = {i: n for n, i in enumerate(dict.fromkeys(ids))}
    steps = []
    for target, row in zip(ids, members.per_row().tolist(), strict=True):
        seen = sorted({i for i in row if i >= 0}, key=place.__getitem__)
        novel = vocab - len(seen)
        steps.append(Step(name[target], target, target not in seen, len(seen), novel, seen))
    return NovelSet(vocab, window, steps)


def shown(token: str) -> str:
    """A token as a reader can see it: spaces and line breaks as signs, what cannot be printed as �.

    >>> shown(" who"), shown("\\n")
    ('␣who', '⏎')
    """
    signs = {" ": "␣", "\n": "⏎"}
    return "".join(signs.get(sign, sign if sign.isprintable() else "\ufffd") for sign in token)


# ---- the figure ------------------------------------------------------------------------------------------------------

NOVEL, WAS_SEEN, TARGET_NOVEL, TARGET_SEEN = range(4)
COLOURS = ("#E3EFF7", "#BDBDBD", BLUE, VERMILLION)
MEANINGS = ("novel", "seen", "target, novel", "target, seen before")


def draw_novel_set(result: NovelSet) -> Figure:
    """A column a step and a row a token, in order of first use: what has been seen is the part above the stairs."""
    steps = result.steps
    if len(steps) > LONGEST_DRAWN:
        raise ValueError(f"sentence has {len(steps)} tokens; a picture holds at most {LONGEST_DRAWN}")
    names = {step.target_id: _short(shown(step.target)) for step in steps}
    labels, codes = list(names.values()), [[_code(step, token) for step in steps] for token in names]
    others = result.vocab - len(names)
    if others:
        labels.append(counted(others, "other token"))
        codes.append([NOVEL] * len(steps))
    column = max(0.2, min(0.85, 10 / len(steps)))  # inches
    digits = max(len(f"{size:,}") for step in steps for size in (step.n_seen, step.n_novel))
    upright = 0.09 * digits > column
    tall = max(1.0, 0.32 * digits) if upright else 1.0  # rows that a number takes
    figure = new_figure(2.6 + column * len(steps), 1.6 + 0.3 * (len(labels) + 2 * tall))
    axes = figure.subplots()
    _draw_cells(axes, codes)
    _draw_sizes(axes, steps, [len(labels) + 0.1 + tall / 2, len(labels) + 0.1 + tall * 1.5], upright)
    axes.set_ylim(len(labels) + 0.2 + 2 * tall, 0)
    _name_cells(axes, labels, [names[step.target_id] for step in steps])
    return figure


def _short(label: str, most: int = 20) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _code(step: Step, token: int) -> int:
    if token == step.target_id:
        return TARGET_NOVEL if step.is_novel else TARGET_SEEN
    return WAS_SEEN if token in step.seen else NOVEL


def _draw_cells(axes: Axes, codes: list[list[int]]) -> None:
    colours = need("matplotlib.colors", extra="plots").ListedColormap(COLOURS)
    axes.pcolormesh(codes, cmap=colours, vmin=-0.5, vmax=3.5, edgecolors="white", linewidth=1.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    used = sorted({code for row in codes for code in row})
    patch = need("matplotlib.patches", extra="plots").Patch
    handles = [patch(color=COLOURS[code], label=MEANINGS[code]) for code in used]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "ncols": len(used)}
    axes.legend(handles=handles, frameon=False, labelcolor=INK, fontsize=10, **below)


def _draw_sizes(axes: Axes, steps: list[Step], lines: list[float], upright: bool) -> None:
    """How large the two sets are, under each column; the left edge says which line is which."""
    look: dict[str, Any] = {"rotation": 90, "va": "center"} if upright else {"va": "center_baseline"}
    for t, step in enumerate(steps):
        for y, size, colour in zip(lines, (step.n_seen, step.n_novel), (GREY, BLUE), strict=True):
            axes.text(t + 0.5, y, f"{size:,}", ha="center", fontsize=9.5, color=colour, **look)
    for y, name in zip(lines, ("seen tokens ", "novel tokens "), strict=True):
        axes.text(0, y, name, ha="right", va="center_baseline", fontsize=10.5, color=INK)


def _name_cells(axes: Axes, tokens: list[str], sentence: list[str]) -> None:
    axes.xaxis.tick_top()
    slanted: dict[str, Any] = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"} if len(sentence) > 8 else {}
    axes.set_xticks([t + 0.5 for t in range(len(sentence))])
    axes.set_xticklabels(sentence, parse_math=False, fontsize=10.5, color=INK, **slanted)
    axes.set_yticks([row + 0.5 for row in range(len(tokens))])
    axes.set_yticklabels(tokens, parse_math=False, fontsize=10.5, color=INK)
    axes.set_title("target of each step", loc="left", fontsize=10, color=GREY)
