"""C_t written down compactly: what the fast paths walk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor


def ids_on(device: torch.device, ids: tuple[int, ...]) -> Tensor:
    """[W] int32. Kept from call to call: a copy from the host makes it wait for a GPU."""
    if torch.compiler.is_compiling():  # a graph has constants of its own
        return torch.tensor(ids, dtype=torch.int32, device=device)
    return _kept_ids(device, ids)


@lru_cache(maxsize=64)
def _kept_ids(device: torch.device, ids: tuple[int, ...]) -> Tensor:
    with torch.inference_mode(False):  # it may be needed for a backward pass later
        return torch.tensor(ids, dtype=torch.int32, device=device)


@dataclass(frozen=True, eq=False)
class Members:
    """The discouraged tokens of N flat rows, as ranges of lists.

    Row n discourages the ids in `ids[line[n], begin[n]:end[n]]`. An id may stand there more than once, and −1 counts
    for nothing. With `complement` the row discourages every other token instead. What a step has seen is a prefix of
    its document, or a window of it, so one list serves all steps of a sequence; a set without that structure has a list
    for each row.

    Every shape follows from the shapes of the input, never from its values: building it neither waits for a GPU nor
    breaks a compiled graph.
    """

    ids: Tensor  # [L, W] int32
    line: Tensor  # [N] int64
    begin: Tensor  # [N] int64
    end: Tensor  # [N] int64
    complement: bool = False
    own_lines: bool = False  # line n for row n

    @staticmethod
    def of_rows(ids: Tensor) -> Members:
        """From one list a row, [N, W], −1 for none."""
        n, width = ids.shape
        line = torch.arange(n, device=ids.device)
        end = torch.full_like(line, width)
        return Members(ids.to(torch.int32), line, torch.zeros_like(line), end, own_lines=True)

    @staticmethod
    def chosen(entries: Tensor, choice: Tensor) -> Members:
        """Row (r, t) gets the ids `entries[r, s]` with `choice[r, t, s]`: [R, S] and [R, T, S]."""
        picked = torch.where(choice, entries[:, None, :], -1)
        return Members.of_rows(picked.flatten(0, 1))

    def take(self, rows: Tensor | slice) -> Members:
        """The same for a part of the rows."""
        begin, end = self.begin[rows], self.end[rows]
        if self.own_lines:
            line = torch.arange(len(begin), device=begin.device)
            return replace(self, ids=self.ids[rows], line=line, begin=begin, end=end)
        return replace(self, line=self.line[rows], begin=begin, end=end)

    def per_row(self) -> Tensor:
        """[N, W] int32: each row's range of its list, −1 outside it."""
        ids = self.ids[self.line]
        position = torch.arange(ids.shape[1], device=ids.device)
        inside = (position >= self.begin[:, None]) & (position < self.end[:, None])
        return torch.where(inside, ids, -1)

    def mask(self, vocab: int) -> Tensor:
        """[N, V] bool: the same set, densely."""
        ids = self.per_row().long()
        listed = torch.zeros(len(ids), vocab + 1, dtype=torch.bool, device=ids.device)
        listed = listed.scatter(1, torch.where(ids < 0, vocab, ids), True)[:, :vocab]  # holes fall off the end
        return ~listed if self.complement else listed

    def without(self, ids: tuple[int, ...]) -> Members:
        """The same set less these ids."""
        if not ids:
            return self
        removed = ids_on(self.ids.device, ids)
        if self.complement:
            return (self.inverse() | _everywhere(removed, self.line)).inverse()
        return replace(self, ids=torch.where(torch.isin(self.ids, removed), -1, self.ids))

    def inverse(self) -> Members:
        """Everything else. Not `~`: a graph that is being compiled cannot trace that operator on an object."""
        return replace(self, complement=not self.complement)

    def __or__(self, other: Members) -> Members:
        return (self.inverse() & other.inverse()).inverse()

    def __and__(self, other: Members) -> Members:
        if self.complement and other.complement:
            return _merge(self.inverse(), other.inverse(), keep="either").inverse()
        if self.complement:
            return _merge(other, self.inverse(), keep="first only")
        if other.complement:
            return _merge(self, other.inverse(), keep="first only")
        return _merge(self, other, keep="both")


def _everywhere(ids: Tensor, line: Tensor) -> Members:
    """The same ids in every row."""
    zero = torch.zeros_like(line)
    return Members(ids[None, :], zero, zero, torch.full_like(line, ids.numel()))


def _distinct(ids: Tensor) -> Tensor:
    """Each row sorted from the largest id down, a repeated id turned into a hole (−1)."""
    ids = ids.sort(1, descending=True).values
    repeated = torch.zeros_like(ids, dtype=torch.bool)
    repeated[:, 1:] = ids[:, 1:] == ids[:, :-1]
    return torch.where(repeated, -1, ids)


def _merge(a: Members, b: Members, keep: Literal["either", "both", "first only"]) -> Members:
    """Combine two plain sets row by row: sort the two lists together, equal neighbours are in both."""
    ids = torch.cat([_distinct(a.per_row()), _distinct(b.per_row())], 1).long()
    second = torch.zeros_like(ids)
    second[:, a.ids.shape[1] :] = 1
    key = torch.where(ids < 0, -1, ids * 2 + second).sort(1, descending=True).values  # the pair (b, a) of an id adjoins
    ids = torch.where(key < 0, -1, key // 2)
    twin_after = torch.zeros_like(ids, dtype=torch.bool)
    twin_after[:, :-1] = (ids[:, 1:] == ids[:, :-1]) & (ids[:, :-1] >= 0)
    twin_before = torch.zeros_like(twin_after)
    twin_before[:, 1:] = twin_after[:, :-1]
    wanted = {
        "either": ~twin_before,
        "both": twin_after,
        "first only": ~twin_after & ~twin_before & (key % 2 == 0),
    }[keep]
    return Members.of_rows(torch.where(wanted, ids, -1))
