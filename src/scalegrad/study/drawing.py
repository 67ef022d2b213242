"""Drawing a study: prefixes by chance, the same for every pair, an order and balanced sides for every rater."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, pairwise

from scalegrad.counts import counted
from scalegrad.study.checks import made_checks
from scalegrad.study.completions import Completions
from scalegrad.study.design import QUESTION, TITLE, Item, Shown, Study

# How often a sheet is drawn anew before it counts as impossible.
_ATTEMPTS = 1000


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
        checks: attention checks, or how many to make (the true rest of a prefix against its words shuffled).
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
        checks = made_checks(completions, drawn, checks, generator)
    if not 0 <= repeats <= len(items) // 2:
        raise ValueError(
            f"repeats must lie between 0 and {len(items) // 2}, half of {counted(len(items), 'pair')}, not {repeats}"
        )
    items += checks
    sheets = {rater: _sheet(items, repeats, generator) for rater in raters}
    return Study(study_id, title, question, seed, ties, closes, tuple(pairs), tuple(items), sheets)


def _checked_pairs(completions: Completions, pairs: Sequence[tuple[str, str]] | None) -> list[tuple[str, str]]:
    systems = list(completions.texts)
    if len(systems) < 2:
        raise ValueError(f"a study needs at least two systems, not {len(systems)}")
    for system in systems:
        if not re.fullmatch(r"[\w.+-]+", system) or system == "tie":
            raise ValueError(
                f"a system's name may hold letters, digits, '.', '+', '_' and '-', and not be 'tie'; it is {system!r}"
            )
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


def usable_prefixes(completions: Completions, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Ids of prefixes whose two texts differ in every pair: to choose between equal texts means nothing.

    >>> texts = {"SG": {"1": "a b", "2": "c"}, "MLE": {"1": "a  b", "2": "d"}}
    >>> usable_prefixes(Completions({"1": "one", "2": "two"}, texts), [("SG", "MLE")])
    ['2']
    """
    texts = completions.texts
    return [
        key for key in completions.prefixes if all(texts[a][key].split() != texts[b][key].split() for a, b in pairs)
    ]


def _drawn_prefixes(
    completions: Completions, pairs: list[tuple[str, str]], prefixes: int, generator: random.Random
) -> list[str]:
    usable = usable_prefixes(completions, pairs)
    if not 1 <= prefixes <= len(usable):
        alike = len(completions.prefixes) - len(usable)
        raise ValueError(
            f"prefixes must lie between 1 and {len(usable)}, not {prefixes}: "
            f"the files hold {len(completions.prefixes)}, of which {alike} are continued with the same words "
            "by both systems of a pair"
        )
    return generator.sample(usable, prefixes)


def _pair_item(completions: Completions, pair: tuple[str, str], key: str) -> Item:
    texts = (completions.texts[pair[0]][key], completions.texts[pair[1]][key])
    return Item("pair", key, completions.prefixes[key], pair, texts)


def _sheet(items: list[Item], repeats: int, generator: random.Random) -> tuple[Shown, ...]:
    for _ in range(_ATTEMPTS):
        if sheet := _arranged(items, repeats, generator):
            return tuple(sheet)
    pairs = [item for item in items if item.kind == "pair"]
    raise ValueError(
        f"prefixes must be more than {len({item.prefix for item in pairs})} for "
        f"{counted(len(pairs), 'pair')} and {counted(repeats, 'repeat')}, or a rater sees a prefix twice in a row"
    )


def _arranged(items: list[Item], repeats: int, generator: random.Random) -> list[Shown] | None:
    """One try at a sheet; None where a prefix would come twice in a row."""
    swapped = _sides(items, generator)
    sheet = [Shown(i, swapped[i]) for i in _order_of_pairs(items, generator)]
    if any(_same_prefix(items, one, other) for one, other in pairwise(sheet)):
        return None
    pairs = len(sheet)
    first_half = sheet[: pairs // 2]
    checks = [Shown(i, swapped[i]) for i, item in enumerate(items) if item.kind == "check"]
    generator.shuffle(checks)
    # One check to each stretch of equal length, the last first: what is inserted then moves no earlier stretch.
    for turn in reversed(range(len(checks))):
        stretch = (pairs * turn // len(checks), pairs * (turn + 1) // len(checks))
        if not _insert(items, sheet, checks[turn], *stretch, generator):
            return None
    # A repeat comes from the first half and returns in the second, its sides changed: who always picks one side
    # contradicts themselves.
    size = len(sheet)
    for shown in generator.sample(first_half, repeats):
        earliest = min(len(sheet), max(size // 2, sheet.index(shown) + max(1, size // 4)))
        again = Shown(shown.item, not shown.swapped, repeat=True)
        if not _insert(items, sheet, again, earliest, len(sheet), generator):
            return None
    return sheet


def _insert(items: list[Item], sheet: list[Shown], shown: Shown, low: int, high: int, generator: random.Random) -> bool:
    """Put `shown` at a place between `low` and `high` where no neighbour has its prefix, if there is one."""
    start = generator.randint(low, high)
    for at in chain(range(start, high + 1), range(low, start)):
        if not any(_same_prefix(items, shown, neighbour) for neighbour in sheet[max(0, at - 1) : at + 1]):
            sheet.insert(at, shown)
            return True
    return False


def _same_prefix(items: list[Item], one: Shown, other: Shown) -> bool:
    a, b = items[one.item], items[other.item]
    # By id too: a check shows half of the prefix that it was made of.
    return a.prefix_id == b.prefix_id or a.prefix == b.prefix


def _order_of_pairs(items: list[Item], generator: random.Random) -> list[int]:
    """All pairs, in as many passes as there are pairs of systems: a prefix comes once a pass, not twice in a row."""
    by_prefix: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        if item.kind == "pair":
            by_prefix.setdefault(item.prefix, []).append(index)
    for indices in by_prefix.values():
        generator.shuffle(indices)
    order: list[int] = []
    # A prefix that stands there under several ids comes in more passes; the passes of those alone come first.
    for turn in reversed(range(max(map(len, by_prefix.values())))):
        prefixes = [prefix for prefix, indices in by_prefix.items() if len(indices) > turn]
        generator.shuffle(prefixes)
        if order and prefixes[0] == items[order[-1]].prefix:
            prefixes.append(prefixes.pop(0))
        order += [by_prefix[prefix][turn] for prefix in prefixes]
    return order


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
