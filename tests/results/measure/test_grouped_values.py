"""Bounded memory must not change the means, and its groups must be those of neighbouring texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.results.measure import grouped_values
from scalegrad.results.measure.grouped_values import GroupedValues


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.integers(1, 200))
def test_mean_and_groups_are_those_of_all_texts(data, size):
    values = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, np.nan]), min_size=size, max_size=size)))
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_values, "GROUPS", 16)
        grouped = GroupedValues(["a"])
        for part in np.split(values, cuts):
            grouped.add({"a": part})
        got = grouped.groups("a")
    group = 1
    while group * 16 < size:
        group *= 2
    assert (grouped.texts, grouped.group_size) == (size, group)
    expected = []
    for start in range(0, size, group):
        there = [value for value in values[start : start + group] if not np.isnan(value)]
        expected.append(sum(there) / len(there) if there else np.nan)
    np.testing.assert_allclose(got, expected)
    there = values[~np.isnan(values)]
    np.testing.assert_allclose(grouped.mean("a"), there.mean() if len(there) else np.nan)
