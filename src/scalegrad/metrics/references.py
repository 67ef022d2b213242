"""Predictions and the references they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

References = Sequence[str | Sequence[str]]


def paired_references(predictions: Sequence[str], references: References) -> list[list[str]]:
    """The references of each prediction as a list; a single one may be given as a text."""
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError("predictions and references must be lists with an entry a text, not one text")
    if len(predictions) != len(references):
        raise ValueError(f"predictions and references must be as many, not {len(predictions)} and {len(references)}")
    if not len(predictions):
        raise ValueError("predictions must hold at least one text; there is none")
    groups = [[group] if isinstance(group, str) else list(group) for group in references]
    empty = next((index for index, group in enumerate(groups) if not group), None)
    if empty is not None:
        raise ValueError(f"references[{empty}] must hold at least one text; there is none")
    return groups
