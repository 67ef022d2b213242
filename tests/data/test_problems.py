"""Bad items stop the work or are counted."""

import pytest

from scalegrad.data.records import Problems


def test_the_first_one_stops_the_work_by_default():
    with pytest.raises(ValueError, match=r"a\.txt, line 3: empty \(why\)"):
        Problems().add("empty", "a.txt, line 3", "why")


def test_all_are_counted_and_the_first_places_named():
    problems = Problems(skip=True)
    for number in range(5):
        problems.add("empty", f"line {number}")
    other = Problems(skip=True)
    other.add("not JSON", "line 9", "a list")
    problems.include(other)
    assert problems.count == 6
    assert problems.counts == {"empty": 5, "not JSON": 1}
    assert "5 × empty (line 0; line 1; line 2; …)" in str(problems)
    assert problems.places["not JSON"] == ["line 9: a list"]
