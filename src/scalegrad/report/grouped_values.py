"""Per-text values of a stream of any length, in bounded memory, and the intervals they give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GROUPS = 1 << 14  # texts kept one by one; beyond that neighbours are added up in groups of 2, 4, 8, …


class GroupedValues:
    """Sums of per-text values: one group a text at first, then 2, 4, … neighbours a group, never over `GROUPS` groups.

    Means are those of all texts, exactly. Resampling works on groups: with one text a group that is the bootstrap by
    text, and with thousands of groups the two hardly differ. Files of equal length have equal groups, so they pair.
    NaN is no value: a text too short to have a figure counts for nothing in it.

    >>> values = GroupedValues(["rep_1"])
    >>> values.add({"rep_1": np.array([0.5, np.nan, 0.25])})
    >>> values.mean("rep_1"), values.texts, values.group_size
    (0.375, 3, 1)
    """

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns
        self.texts = 0
        self.group_size = 1
        self._sums = np.zeros((len(columns), GROUPS))
        self._counts = np.zeros((len(columns), GROUPS))

    def add(self, values: Mapping[str, Floats]) -> None:
        """Take in the values of the next texts: an array of equal length for each column."""
        table = np.array([values[column] for column in self.columns], dtype=np.float64)  # [columns, texts]
        there = ~np.isnan(table)
        numbers = np.arange(self.texts, self.texts + table.shape[1])
        self.texts += table.shape[1]
        while self.texts > GROUPS * self.group_size:
            self._merge_neighbours()
        groups = numbers // self.group_size
        for row in range(len(self.columns)):
            kept = there[row]
            self._sums[row] += np.bincount(groups[kept], weights=table[row, kept], minlength=GROUPS)
            self._counts[row] += np.bincount(groups[kept], minlength=GROUPS)

    def _merge_neighbours(self) -> None:
        for array in (self._sums, self._counts):
            merged = array[:, 0::2] + array[:, 1::2]
            array[:] = 0.0
            array[:, : GROUPS // 2] = merged
        self.group_size *= 2

    def mean(self, column: str) -> float:
        """The mean over all texts that have a value; NaN if none has."""
        sums, counts = self.groups(column)
        return float(sums.sum() / counts.sum()) if counts.any() else float("nan")

    def groups(self, column: str) -> tuple[Floats, Floats]:
        """Sum and number of the values of each group, [groups] each."""
        row, used = self.columns.index(column), -(-self.texts // self.group_size)
        return self._sums[row, :used], self._counts[row, :used]

