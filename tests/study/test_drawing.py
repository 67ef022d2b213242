"""What is drawn: the same prefixes for every pair, balanced sides, spread checks, repeats that come back late."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.study import Completions, draw_study
from scalegrad.study.design import Item
from tests.study.studies import made_completions, made_study

SYSTEMS = ("sg", "mle", "ul")
PAIRS = (("sg", "mle"), ("sg", "ul"))


@settings(max_examples=60, deadline=None)
@given(
    prefixes=st.integers(2, 30),
    raters=st.integers(1, 4),
    checks=st.integers(0, 8),
    data=st.data(),
    seed=st.integers(0, 2**32),
)
def test_every_sheet_holds_everything_once_balanced_and_well_spaced(prefixes, raters, checks, data, seed):
    repeats = data.draw(st.integers(0, prefixes))
    names = [f"r{i}" for i in range(raters)]
    study = made_study(
        systems=SYSTEMS, pairs=PAIRS, prefixes=prefixes, raters=names, checks=checks, repeats=repeats, seed=seed
    )
    by_pair = {pair: {item.prefix_id for item in study.items if item.systems == pair} for pair in PAIRS}
    assert by_pair[PAIRS[0]] == by_pair[PAIRS[1]]
    assert len(by_pair[PAIRS[0]]) == prefixes
    for sheet in study.sheets.values():
        first = [shown for shown in sheet if not shown.repeat]
        assert sorted(shown.item for shown in first) == list(range(2 * prefixes + checks))
        for pair in PAIRS:
            swapped = [shown.swapped for shown in first if study.items[shown.item].systems == pair]
            assert abs(2 * sum(swapped) - len(swapped)) <= 1
        again = [shown for shown in sheet if shown.repeat]
        assert len({shown.item for shown in again}) == len(again) == repeats
        place = {shown.item: at for at, shown in enumerate(sheet) if not shown.repeat}
        for at, shown in enumerate(sheet):
            if shown.repeat:
                assert study.items[shown.item].kind == "pair"
                assert at > place[shown.item]
                assert shown.swapped != sheet[place[shown.item]].swapped
    assert in_a_row(study) == 0


def in_a_row(study):
    """How often a sheet shows a prefix twice in a row; a check made of a prefix shows it too."""
    shown = [[study.items[shown.item] for shown in sheet] for sheet in study.sheets.values()]
    return sum(
        one.prefix_id == next_one.prefix_id or one.prefix == next_one.prefix
        for items in shown
        for one, next_one in pairwise(items)
    )


@pytest.mark.parametrize(
    "options", [{"prefixes": 10}, {"prefixes": 40, "checks": 8}, {"prefixes": 3}], ids=["repeats", "checks", "few"]
)
def test_no_prefix_comes_twice_in_a_row(options):
    """Two pairs and six repeats, two hundred sheets; with forty prefixes, checks have to reuse those of the study."""
    names = [f"r{i}" for i in range(200)]
    options = {"repeats": min(6, options["prefixes"])} | options
    assert in_a_row(made_study(systems=SYSTEMS, pairs=PAIRS, raters=names, **options)) == 0


def test_one_prefix_under_two_ids_is_one_prefix():
    completions = made_completions(20)
    prefixes = {key: completions.prefixes[str(int(key) // 2)] for key in completions.prefixes}
    study = draw_study(
        Completions(prefixes, completions.texts), study_id="x", prefixes=20, raters=[f"r{i}" for i in range(50)]
    )
    assert in_a_row(study) == 0


@pytest.mark.parametrize("repeats", [0, 1])
def test_one_prefix_in_two_pairs_is_refused(repeats):
    with pytest.raises(ValueError, match=r"prefixes must be more than 1 .*twice in a row"):
        made_study(systems=SYSTEMS, pairs=PAIRS, prefixes=1, repeats=repeats)


def test_repeats_are_a_quarter_of_the_sheet_away():
    study = made_study(prefixes=40, repeats=10)
    for sheet in study.sheets.values():
        place = {shown.item: at for at, shown in enumerate(sheet) if not shown.repeat}
        assert min(at - place[shown.item] for at, shown in enumerate(sheet) if shown.repeat) >= 10


def test_checks_fall_one_to_each_stretch():
    study = made_study(prefixes=20, checks=4)
    for sheet in study.sheets.values():
        checks = [at for at, shown in enumerate(sheet) if study.items[shown.item].kind == "check"]
        # Four stretches of five pairs and one check each.
        assert [at // 6 for at in checks] == [0, 1, 2, 3]


def test_the_seed_decides_and_raters_differ():
    assert made_study(seed=3) == made_study(seed=3)
    assert made_study(seed=3).items != made_study(seed=4).items
    sheets = made_study(prefixes=20, raters=["a", "b"]).sheets
    assert sheets["a"] != sheets["b"]


def test_prefixes_are_drawn_uniformly():
    drawn = Counter(item.prefix_id for seed in range(400) for item in made_study(prefixes=10, seed=seed).items)
    # 400 draws of 10 out of 40: each prefix 100 times, standard deviation √(400 · ¼ · ¾) = 8.7.
    assert len(drawn) == 40
    assert max(abs(count - 100) for count in drawn.values()) < 5 * 8.7


def test_blinding_is_undone_right():
    study = made_study(prefixes=10)
    for rater, sheet in study.sheets.items():
        for number, shown in enumerate(sheet, 1):
            item = study.items[shown.item]
            first, second = study.texts(rater, number)
            assert item.texts[item.systems.index(study.chosen(rater, number, "first"))] == first
            assert item.texts[item.systems.index(study.chosen(rater, number, "second"))] == second
            assert study.chosen(rater, number, "tie") is None


def test_made_checks_use_fresh_prefixes_and_shuffle_the_true_rest():
    completions = made_completions()
    study = draw_study(completions, study_id="x", prefixes=30, checks=10)
    used = {item.prefix_id for item in study.items if item.kind == "pair"}
    checks = [item for item in study.items if item.kind == "check"]
    assert len(checks) == 10
    for check in checks:
        assert check.prefix_id not in used
        right, wrong = check.texts
        assert f"{check.prefix} {right}" == completions.prefixes[check.prefix_id]
        assert sorted(right.split()) == sorted(wrong.split())
        assert right != wrong


def test_equal_continuations_are_never_drawn():
    prefixes = {str(i): f"prefix {i}" for i in range(6)}
    one = {key: f"text {key}" for key in prefixes}
    two = {key: f"text  {key} " if int(key) < 4 else "other" for key in prefixes}
    completions = Completions(prefixes, {"one": one, "two": two})
    study = draw_study(completions, study_id="x", prefixes=2)
    assert {item.prefix_id for item in study.items} == {"4", "5"}
    with pytest.raises(
        ValueError, match=r"between 1 and 2, not 3: the files hold 6, of which 4 are continued with the"
    ):
        draw_study(completions, study_id="x", prefixes=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefixes": 0}, "prefixes must lie between 1 and 40"),
        ({"pairs": [("sg", "gpt")]}, "pairs names 'gpt'; the systems are mle, sg"),
        ({"pairs": [("sg", "mle"), ("mle", "sg")]}, "given once, not mle:sg"),
        ({"pairs": [("sg", "sg")]}, "two systems"),
        ({"pairs": []}, "at least one pair"),
        ({"repeats": 4}, "repeats must lie between 0 and 3"),
        ({"checks": 99}, "checks must lie between 0 and 40"),
        ({"raters": []}, "one or more different names"),
        ({"raters": ["a", "a"]}, "different names"),
        ({"raters": ["a b"]}, "a rater's name may hold"),
        ({"title": "SG or not?"}, "must not name the system 'sg'"),
        ({"question": " "}, "question must not be empty"),
        ({"closes": datetime(2030, 1, 1)}, "must know its time zone"),
        ({"systems": ("tie", "sg")}, "not be 'tie'"),
        ({"systems": ("a/b", "sg")}, "a system's name may hold"),
        ({"systems": ("sg",)}, "at least two systems, not 1"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        made_study(**options)


def test_ready_checks_are_taken_as_they_are():
    check = Item("check", "c1", "2 + 2 is", ("right", "wrong"), ("4", "fish"))
    study = made_study(checks=[check])
    assert [item for item in study.items if item.kind == "check"] == [check]


@pytest.mark.parametrize("seed", range(20))
def test_in_a_sheet_of_four_a_repeat_still_comes_after(seed):
    study = made_study(prefixes=2, raters=["a", "b", "c"], checks=1, repeats=1, seed=seed)
    for sheet in study.sheets.values():
        (at,) = [at for at, shown in enumerate(sheet) if shown.repeat]
        assert sheet[at].item in [shown.item for shown in sheet[:at]]
