"""Per-text values of a stream of any length, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GROUPS = 1 << 13  # texts kept one by one; beyond that neighbours are averaged in groups of 2, 4, 8, …


class GroupedValues:
    """Sums of per-text values: one group a text at first, then 2, 4, … neighbours a group, never over `GROUPS` groups.

    The mean is that of all texts. Resampling works on the groups' means: with one text a group that is the bootstrap by
    text, and with thousands of groups the two hardly differ. Files of equally many texts have equal groups, so they
    pair. NaN is no value: a text too short to have a figure takes no part in it.

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
        row = self.columns.index(column)
        count = self._counts[row].sum()
        return float(self._sums[row].sum() / count) if count else float("nan")

    def groups(self, column: str) -> Floats:
        """The mean of each group, [groups]; NaN where no text of a group has a value."""
        row, used = self.columns.index(column), -(-self.texts // self.group_size)
        sums, counts = self._sums[row, :used], self._counts[row, :used]
        means = np.full(used, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means
