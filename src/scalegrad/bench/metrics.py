"""Rep/l and Rep-n beside loops in plain Python: `python -m scalegrad.bench metrics`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scalegrad.bench.record import hardware, print_table, save
from scalegrad.bench.runner import Measurement, WrongResult, compare
from scalegrad.metrics import next_token, repetition_per_text

Ids = NDArray[np.int64]

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
    hits = {f"{kind}_{window}": 0 for window in WINDOWS for kind in ("rep", "wrep")}
    for guesses, golds in zip(predictions.tolist(), targets.tolist(), strict=True):
        for place, guess in enumerate(guesses):
            for window in WINDOWS:
                if guess in golds[max(0, place - window) : place]:
                    hits[f"rep_{window}"] += 1
                    hits[f"wrep_{window}"] += guess != golds[place]
    return {name: count / targets.size for name, count in hits.items()}


def latest_places(predictions: Ids, targets: Ids) -> dict[str, float]:
    """Rep/l by a better loop: remember where each target stood last; one look-up serves all windows."""
    hits = {f"{kind}_{window}": 0 for window in WINDOWS for kind in ("rep", "wrep")}
    for guesses, golds in zip(predictions.tolist(), targets.tolist(), strict=True):
        latest: dict[int, int] = {}
        for place, (guess, gold) in enumerate(zip(guesses, golds, strict=True)):
            distance = place - latest.get(guess, -CHUNK)
            for window in WINDOWS:
                if distance <= window:
                    hits[f"rep_{window}"] += 1
                    hits[f"wrep_{window}"] += guess != gold
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


def _same(expected: dict[str, list[float]] | dict[str, float]) -> Callable[[str, object], None]:
    """No speed counts for a wrong figure."""

    def check(name: str, result: object) -> None:
        assert isinstance(result, dict)
        error = max(float(np.abs(np.subtract(result[key], value)).max()) for key, value in expected.items())
        if error > 1e-12:
            raise WrongResult(f"{name}: a figure errs by {error:.1e}")

    return check


def run(scale: float = 1.0, rounds: int = 5) -> list[Measurement]:
    """Ten million ids, one million (with the slow loop), and 20,000 texts; `scale` makes all of them smaller."""
    table: list[Measurement] = []
    for count, loops in ((10_000_000, (latest_places,)), (1_000_000, (latest_places, slices))):
        guesses, golds = some_ids(max(CHUNK, int(count * scale)))
        contenders: dict[str, Callable[[], object]] = {"scalegrad": partial(next_token, guesses, golds, WINDOWS)}
        contenders |= {f"loop, {_title(loop)}": partial(loop, guesses, golds) for loop in loops}
        few = {name: 1 for name in contenders if name != "scalegrad"}
        check = _same(latest_places(guesses, golds))
        table += compare(f"Rep/16, /32, /128 of {golds.size:,} ids", contenders, check=check, rounds=rounds, few=few)
    texts = some_texts(max(1, int(20_000 * scale)))
    expected = sets_of_tuples(texts)
    title = f"Rep-1 … Rep-4 of {len(texts):,} texts (Rep-1 {np.mean(expected['rep_1']):.3f})"
    contenders = {"scalegrad": partial(repetition_per_text, texts)}
    contenders |= {f"loop, {_title(loop)}": partial(loop, texts) for loop in (sets_of_zips, sets_of_tuples)}
    return table + compare(title, contenders, check=_same(expected), rounds=rounds)


def _title(loop: Callable[..., object]) -> str:
    return loop.__name__.replace("_", " ")


def main(argv: list[str]) -> None:
    """Print the tables and store them."""
    parser = argparse.ArgumentParser(prog="python -m scalegrad.bench metrics", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="less than 1 for a quicker look (default: 1)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/metrics.csv"), help="where the results go")
    args = parser.parse_args(argv)
    print(f"{hardware()}, numpy {np.__version__}; loops over ids run once, the rest {args.rounds} times in turns")
    table = run(args.scale, args.rounds)
    for case in dict.fromkeys(row.case for row in table):
        print_table(case, [row for row in table if row.case == case])
    save(args.out, table, numpy=np.__version__)
    print(f"\nstored in {args.out}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
