"""Rep/l and Rep-n beside loops in plain Python: `python -m benchmarks metrics`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from benchmarks.clock import Contender, CpuClock
from benchmarks.options import Timing
from benchmarks.record import Result, about, finish, lines, print_table
from benchmarks.runner import WrongResult, compare
from scalegrad.counts import counted
from scalegrad.metrics import next_token, repetition_per_text
from scalegrad.options import FLAT

Ids = NDArray[np.int64]
Figures = Mapping[str, float] | Mapping[str, Sequence[float]]

BOUND = 1e-12  # of an error
WINDOWS = (16, 32, 128)
VOCAB, CHUNK = 50_257, 1024


def some_ids(count: int) -> tuple[Ids, Ids]:
    """Predictions and targets [chunks, 1024], ids as frequent as words are (Zipf); two of five predictions right."""
    generator = np.random.default_rng(0)
    chances = (np.arange(VOCAB) + 1.0) ** -1.1
    shape = (count // CHUNK, CHUNK)
    guesses, targets = generator.choice(VOCAB, (2, *shape), p=chances / chances.sum())
    return np.where(generator.random(shape) < 0.4, targets, guesses), targets


def some_texts(count: int) -> list[str]:
    """Texts of about 100 tokens, words as frequent as in English (Zipf), one in eight before a punctuation mark."""
    generator = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu"))
    vocabulary = ["".join(letters[generator.integers(0, 12, 2 + rank.bit_length() // 2)]) for rank in range(30_000)]
    vocabulary += [word + sign for word in vocabulary[:4000] for sign in ",."]
    chances = (np.arange(30_000) + 1.0) ** -1.05
    chances = np.concatenate([chances, np.repeat(chances[:4000], 2) * 0.08])
    drawn = generator.choice(len(vocabulary), (count, 84), p=chances / chances.sum())
    return [" ".join([vocabulary[word] for word in text]) for text in drawn.tolist()]


def slices(predictions: Ids, targets: Ids) -> dict[str, float]:
    """Rep/l as defined: look each prediction up in the slice of targets before it."""
    hits = {f"{kind}_{window}": 0 for window in WINDOWS for kind in ("rep_window", "wrong_rep_window")}
    for guesses, golds in zip(predictions.tolist(), targets.tolist(), strict=True):
        for place, guess in enumerate(guesses):
            for window in WINDOWS:
                if guess in golds[max(0, place - window) : place]:
                    hits[f"rep_window_{window}"] += 1
                    hits[f"wrong_rep_window_{window}"] += guess != golds[place]
    return {name: count / targets.size for name, count in hits.items()}


def latest_places(predictions: Ids, targets: Ids) -> dict[str, float]:
    """Rep/l by a better loop: remember where each target stood last; one look-up serves all windows."""
    hits = {f"{kind}_{window}": 0 for window in WINDOWS for kind in ("rep_window", "wrong_rep_window")}
    for guesses, golds in zip(predictions.tolist(), targets.tolist(), strict=True):
        latest: dict[int, int] = {}
        for place, (guess, gold) in enumerate(zip(guesses, golds, strict=True)):
            distance = place - latest.get(guess, -CHUNK)
            for window in WINDOWS:
                if distance <= window:
                    hits[f"rep_window_{window}"] += 1
                    hits[f"wrong_rep_window_{window}"] += guess != gold
            latest[gold] = place
    return {name: count / targets.size for name, count in hits.items()}


def sets_of_tuples(texts: list[str]) -> dict[str, list[float]]:
    """Rep-n as usually written: a set of tuples for each text and n."""
    values: dict[str, list[float]] = {f"rep_{n}": [] for n in range(1, 5)}
    for text in texts:
        tokens = re.findall(r"\w+|[^\w\s]|\n", text)
        for n in range(1, 5):
            ngrams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
            values[f"rep_{n}"].append(1 - len(set(ngrams)) / len(ngrams))
    return values


def sets_of_zips(texts: list[str]) -> dict[str, list[float]]:
    """Rep-n with n-grams made by zip, the fastest that plain Python sets give."""
    values: dict[str, list[float]] = {f"rep_{n}": [] for n in range(1, 5)}
    for text in texts:
        tokens = re.findall(r"\w+|[^\w\s]|\n", text)
        for n in range(1, 5):
            distinct = len(set(zip(*(tokens[i:] for i in range(n)), strict=False)))
            values[f"rep_{n}"].append(1 - distinct / (len(tokens) - n + 1))
    return values


def _error(expected: Figures, name: str, result: Figures) -> float:
    """The largest error over its bound: no speed counts for a wrong figure."""
    error = max(float(np.abs(np.subtract(result[key], value)).max()) for key, value in expected.items())
    if error > BOUND:
        raise WrongResult(f"{name}: a figure errs by {error:.1e}", error / BOUND)
    return error / BOUND


def measure(scale: float = 1.0, rounds: int = 7) -> Iterator[Result]:
    """Ten million ids, one million (with the slow loop), and 20,000 texts; `scale` makes all of them smaller."""
    for count, loops in ((10_000_000, (latest_places,)), (1_000_000, (latest_places, slices))):
        ids = some_ids(max(CHUNK, int(count * scale)))
        contenders = [Contender("scalegrad", partial(next_token, *ids, WINDOWS))]
        contenders += [Contender(_title(loop), partial(loop, *ids)) for loop in loops]
        check = partial(_error, latest_places(*ids))
        case = f"Rep/16, /32, /128 of {ids[0].size:,} ids"
        yield {"case": case}, compare(contenders, CpuClock(), check=check, rounds=rounds)
    texts = some_texts(max(1, int(20_000 * scale)))
    expected = sets_of_tuples(texts)
    contenders = [Contender("scalegrad", partial(repetition_per_text, texts))]
    contenders += [Contender(_title(loop), partial(loop, texts)) for loop in (sets_of_zips, sets_of_tuples)]
    case = f"Rep-1 … Rep-4 of {counted(len(texts), 'text')} (Rep-1 {np.mean(expected['rep_1']):.3f})"
    yield {"case": case}, compare(contenders, CpuClock(), check=partial(_error, expected), rounds=rounds)


def _title(loop: Callable[..., object]) -> str:
    return f"loop, {loop.__name__.replace('_', ' ')}"


@dataclass(frozen=True, kw_only=True)
class Options(Timing):
    """What `python -m benchmarks metrics` can be told."""

    scale: float = 1.0
    """Less than 1 for a quicker look."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale <= 0:
            raise ValueError(f"scale must be above 0, not {self.scale}")


_OPTIONS = Options()


def command(options: Annotated[Options, FLAT] = _OPTIONS) -> None:
    """Rep/l and Rep-n beside loops in plain Python.

    Example: python -m benchmarks metrics --scale 0.1
    """
    facts = {**about("cpu"), "numpy": np.__version__}
    if not options.json:
        print(f"{facts['hardware']}, numpy {np.__version__}; median of {options.rounds} in turns")
    results = list[Result]()
    for result in measure(options.scale, options.rounds):
        results.append(result)
        if not options.json:
            print_table(str(result[0]["case"]), result[1])
    finish(options.out or Path("benchmarks/metrics.csv"), lines(results), facts, options.json)
