"""A study as it is drawn: which pairs of texts, shown to whom, in which order and on which side."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from scalegrad.study.completions import Completions

Choice = Literal["first", "second", "tie"]
QUESTION = "Which text continues the beginning better, by relevance, grammar, fluency and readability?"
TITLE = "Which continues it better?"

# What checks call their texts: the second is obviously worse.
CHECK = ("right", "wrong")
# A check shows the first half of a prefix and asks for its second half; both need words enough to be obvious.
_WORDS_OF_A_CHECK = 16


@dataclass(frozen=True)
class Item:
    """Two texts that continue one prefix: `texts[i]` is by `systems[i]`. A check's texts are the right and the wrong."""

    kind: Literal["pair", "check"]
    prefix_id: str
    prefix: str
    systems: tuple[str, str]
    texts: tuple[str, str]


@dataclass(frozen=True)
class Shown:
    """An item as one rater meets it: `swapped` puts `texts[1]` first; `repeat` marks its second showing."""

    item: int
    swapped: bool
    repeat: bool = False


@dataclass(frozen=True)
class Study:
    """A drawn study: `sheets[rater]` lists what that rater is shown, number 1 first."""

    id: str
    title: str
    question: str
    seed: int
    ties: bool
    closes: datetime | None
    pairs: tuple[tuple[str, str], ...]
    items: tuple[Item, ...]
    sheets: dict[str, tuple[Shown, ...]]

    def shown(self, rater: str, number: int) -> tuple[Shown, Item]:
        """What `rater` is asked at `number`, counted from 1."""
        shown = self.sheets[rater][number - 1]
        return shown, self.items[shown.item]

    def texts(self, rater: str, number: int) -> tuple[str, str]:
        """The two texts in the order in which `rater` sees them."""
        shown, item = self.shown(rater, number)
        return (item.texts[1], item.texts[0]) if shown.swapped else item.texts

    def chosen(self, rater: str, number: int, choice: Choice) -> str | None:
        """The system that a choice of `rater` at `number` is a vote for; None is a tie."""
        shown, item = self.shown(rater, number)
        if choice == "tie":
            return None
        return item.systems[(choice == "second") != shown.swapped]


def draw_study(
    completions: Completions,
    *,
    study_id: str,
    pairs: Sequence[tuple[str, str]] | None = None,
    prefixes: int = 100,
    raters: Sequence[str] = ("rater-1", "rater-2"),
    seed: int = 0,
    ties: bool = False,
    checks: int | Sequence[Item] = 0,
    repeats: int = 0,
    closes: datetime | None = None,
    title: str = TITLE,
    question: str = QUESTION,
) -> Study:
    """Draw a study: N prefixes, the same for every pair, and for each rater an order and balanced sides of their own.

    Args:
        completions: what the systems wrote, from `read_completions`.
        study_id: a short name that no other study in the same database has.
        pairs: systems to hold against each other; every two of them if not given.
        prefixes: how many to draw, among those that no two paired systems continue with the same words.
        raters: names of the raters; each is shown every item.
        checks: attention checks: ready ones, or how many to make (the true rest of a prefix against its words shuffled).
        repeats: pairs shown to a rater a second time, with the sides changed.
        closes: after this moment no answer is taken; it must know its time zone.
    """
    pairs = _checked_pairs(completions, pairs)
    _check_words(title, question, list(completions.texts))
    _check_raters(raters)
    if closes is not None and closes.tzinfo is None:
        raise ValueError(f"closes must know its time zone; {closes} does not")
    generator = random.Random(seed)
    drawn = _drawn_prefixes(completions, pairs, prefixes, generator)
    items = [_pair_item(completions, pair, key) for pair in pairs for key in drawn]
    if isinstance(checks, int):
        checks = _made_checks(completions, drawn, checks, generator)
    if not 0 <= repeats <= len(items) // 2:
        raise ValueError(f"repeats must lie between 0 and {len(items) // 2}, half of the {len(items)} pairs, not {repeats}")
    items += checks
    sheets = {rater: _sheet(items, repeats, generator) for rater in raters}
    return Study(study_id, title, question, seed, ties, closes, tuple(pairs), tuple(items), sheets)


def _checked_pairs(completions: Completions, pairs: Sequence[tuple[str, str]] | None) -> list[tuple[str, str]]:
    systems = list(completions.texts)
    if len(systems) < 2:
        raise ValueError(f"a study needs at least two systems, not {len(systems)}")
    for system in systems:
        if not re.fullmatch(r"[\w.+-]+", system):
            raise ValueError(f"a system's name may hold letters, digits, '.', '+', '_' and '-', not {system!r}")
    if pairs is None:
        return [(a, b) for i, a in enumerate(systems) for b in systems[i + 1 :]]
    met: set[frozenset[str]] = set()
    for pair in pairs:
        for system in pair:
            if system not in systems:
                raise ValueError(f"pairs names {system!r}; the systems are {', '.join(systems)}")
        if len(set(pair)) != 2 or frozenset(pair) in met:
            raise ValueError(f"each pair must be of two systems and given once, not {pair[0]}:{pair[1]}")
        met.add(frozenset(pair))
    if not met:
        raise ValueError("pairs must name at least one pair of systems")
    return list(pairs)


def _check_words(title: str, question: str, systems: list[str]) -> None:
    """Raters read the title and the question: they must not name a system."""
    for name, text in (("title", title), ("question", question)):
        if not text.strip():
            raise ValueError(f"{name} must not be empty")
        for system in systems:
            if re.search(rf"(?<!\w){re.escape(system)}(?!\w)", text, re.IGNORECASE):
                raise ValueError(f"{name} is shown to raters and must not name the system {system!r}: {text!r}")


def _check_raters(raters: Sequence[str]) -> None:
    for rater in raters:
        if not re.fullmatch(r"[\w.@+-]{1,64}", rater):
            raise ValueError(
                f"a rater's name may hold up to 64 letters, digits, '.', '@', '+', '_' and '-', not {rater!r}"
            )
    if not raters or len(set(raters)) != len(raters):
        raise ValueError(f"raters must be one or more different names, not {list(raters)}")


def _drawn_prefixes(
    completions: Completions, pairs: list[tuple[str, str]], prefixes: int, generator: random.Random
) -> list[str]:
    """Prefixes whose two texts differ in every pair: to choose between equal texts means nothing."""
    texts = completions.texts
    usable = [
        key for key in completions.prefixes if all(texts[a][key].split() != texts[b][key].split() for a, b in pairs)
    ]
    if not 1 <= prefixes <= len(usable):
        alike = len(completions.prefixes) - len(usable)
        raise ValueError(
            f"prefixes must lie between 1 and {len(usable)}, not {prefixes}: the files hold {len(completions.prefixes)}, "
            f"of which {alike} are continued with the same words by both systems of a pair"
        )
    return generator.sample(usable, prefixes)


def _pair_item(completions: Completions, pair: tuple[str, str], key: str) -> Item:
    texts = (completions.texts[pair[0]][key], completions.texts[pair[1]][key])
    return Item("pair", key, completions.prefixes[key], pair, texts)


def _made_checks(completions: Completions, drawn: list[str], count: int, generator: random.Random) -> list[Item]:
    """Checks out of human text: half a prefix, to be continued by its other half or by those words shuffled.

    Prefixes that are not in the study come first, so that no rater meets the same words twice.
    """
    long = [key for key, prefix in completions.prefixes.items() if _makes_a_check(prefix.split())]
    taken = set(drawn)
    fresh = [key for key in long if key not in taken]
    used = [key for key in long if key in taken]
    if not 0 <= count <= len(long):
        raise ValueError(
            f"checks must lie between 0 and {len(long)}, not {count}: only a prefix of {_WORDS_OF_A_CHECK} words or more, "
            "not always the same, makes one"
        )
    keys = generator.sample(fresh, min(count, len(fresh)))
    keys += generator.sample(used, count - len(keys))
    return [_made_check(key, completions.prefixes[key], generator) for key in keys]


def _makes_a_check(words: list[str]) -> bool:
    return len(words) >= _WORDS_OF_A_CHECK and len(set(words[len(words) // 2 :])) >= _WORDS_OF_A_CHECK // 3


def _made_check(key: str, prefix: str, generator: random.Random) -> Item:
    words = prefix.split()
    beginning, rest = words[: len(words) // 2], words[len(words) // 2 :]
    neighbours = set(zip(rest, rest[1:], strict=False))

    def kept(order: list[str]) -> int:
        return sum(pair in neighbours for pair in zip(order, order[1:], strict=False))

    # Of a few shuffles the one that keeps the fewest words together: obviously wrong, not just odd.
    wrong = min((generator.sample(rest, len(rest)) for _ in range(20)), key=kept)
    return Item("check", key, " ".join(beginning), CHECK, (" ".join(rest), " ".join(wrong)))


def _sheet(items: list[Item], repeats: int, generator: random.Random) -> tuple[Shown, ...]:
    order = _spread(_passes(items, generator), [i for i, item in enumerate(items) if item.kind == "check"], generator)
    swapped = _sides(items, generator)
    sheet = [Shown(i, swapped[i]) for i in order]
    # A repeat comes from the first half and returns in the second, its sides changed: who always picks one side
    # contradicts themselves.
    pairs = [shown for shown in sheet if items[shown.item].kind == "pair"]
    for shown in generator.sample(pairs[: len(pairs) // 2], repeats):
        earliest = min(len(sheet), max(len(order) // 2, sheet.index(shown) + len(order) // 4))
        sheet.insert(generator.randint(earliest, len(sheet)), Shown(shown.item, not shown.swapped, repeat=True))
    return tuple(sheet)


def _passes(items: list[Item], generator: random.Random) -> list[int]:
    """All pairs in as many passes as there are pairs of systems, each prefix once a pass: it returns late, not at once."""
    by_prefix: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        if item.kind == "pair":
            by_prefix.setdefault(item.prefix_id, []).append(index)
    for indices in by_prefix.values():
        generator.shuffle(indices)
    order: list[int] = []
    keys = list(by_prefix)
    for turn in range(len(next(iter(by_prefix.values())))):
        last = keys[-1] if turn else None
        generator.shuffle(keys)
        if keys[0] == last:
            keys.append(keys.pop(0))
        order += [by_prefix[key][turn] for key in keys]
    return order


def _spread(order: list[int], checks: list[int], generator: random.Random) -> list[int]:
    """Put checks among the pairs, one to each stretch of equal length."""
    checks = generator.sample(checks, len(checks))
    spread: list[int] = []
    for turn, check in enumerate(checks):
        stretch = order[len(order) * turn // len(checks) : len(order) * (turn + 1) // len(checks)]
        stretch.insert(generator.randint(0, len(stretch)), check)
        spread += stretch
    return spread or order


def _sides(items: list[Item], generator: random.Random) -> list[bool]:
    """For every item whether its texts change sides: half of the items of each pair of systems do, by chance which."""
    swapped = [False] * len(items)
    groups: dict[tuple[str, str], list[int]] = {}
    for index, item in enumerate(items):
        groups.setdefault(item.systems, []).append(index)
    for group in groups.values():
        sides = [turn % 2 == 0 for turn in range(len(group))]
        if len(group) % 2:
            sides[0] = generator.random() < 0.5
        generator.shuffle(sides)
        for index, side in zip(group, sides, strict=True):
            swapped[index] = side
    return swapped
