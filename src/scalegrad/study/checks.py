"""Attention checks: a pair of texts with an obvious answer, made of the prefixes themselves or brought along."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

from scalegrad.data.readers import name_of, nothing_in
from scalegrad.data.records import Problems
from scalegrad.study.completions import Completions, read_objects, texts_in
from scalegrad.study.design import CHECK, Item

# A check shows the first half of a prefix and asks for its second half; both need words enough to be obvious.
_WORDS_OF_A_CHECK = 16


def read_checks(file: str | Path, problems: Problems | None = None) -> list[Item]:
    """Checks from a JSONL file: each line has a `prefix`, the `right` continuation and a `wrong` one."""
    problems = Problems() if problems is None else problems
    checks = []
    for record in read_objects(file, problems):
        if texts := texts_in(record, ("prefix", *CHECK), problems):
            prefix, right, wrong = texts
            checks.append(Item("check", f"check-{record.line}", prefix, CHECK, (right, wrong)))
    if not checks:
        raise ValueError(nothing_in(name_of(file), problems, "check"))
    return checks


def made_checks(completions: Completions, drawn: list[str], count: int, generator: random.Random) -> list[Item]:
    """Checks out of human text: half a prefix, to be continued by its other half or by those words shuffled.

    Prefixes that are not in the study come first, so that no rater meets the same words twice.
    """
    long = [key for key, prefix in completions.prefixes.items() if _makes_a_check(prefix.split())]
    taken = set(drawn)
    fresh = [key for key in long if key not in taken]
    used = [key for key in long if key in taken]
    if not 0 <= count <= len(long):
        raise ValueError(
            f"checks must lie between 0 and {len(long)}, not {count}: "
            f"only a prefix of {_WORDS_OF_A_CHECK} words or more, not always the same, makes one"
        )
    keys = generator.sample(fresh, min(count, len(fresh)))
    keys += generator.sample(used, count - len(keys))
    return [_made_check(key, completions.prefixes[key], generator) for key in keys]


def _makes_a_check(words: list[str]) -> bool:
    return len(words) >= _WORDS_OF_A_CHECK and len(set(words[len(words) // 2 :])) >= _WORDS_OF_A_CHECK // 3


def _made_check(key: str, prefix: str, generator: random.Random) -> Item:
    words = prefix.split()
    beginning, rest = words[: len(words) // 2], words[len(words) // 2 :]
    neighbours = set(pairwise(rest))

    def kept(order: list[str]) -> int:
        return sum(pair in neighbours for pair in pairwise(order))

    # Of a few shuffles the one that keeps the fewest words together: obviously wrong, not just odd.
    wrong = min((generator.sample(rest, len(rest)) for _ in range(20)), key=kept)
    return Item("check", key, " ".join(beginning), CHECK, (" ".join(rest), " ".join(wrong)))
