"""Examples of unequal length as one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

_FILL = {"labels": -100, "attention_mask": 0, "decoder_attention_mask": 0, "token_type_ids": 0}


@dataclass(frozen=True)
class Pad:
    """Pad every field to the longest of the batch: labels with -100, ids with `pad_id`, real numbers with 0.

    An attention mask is added where `input_ids` need padding and the examples bring none. `left`: pad at the beginning.
    `masks` names fields that always get a mask, and it; `fill` what else to pad a field with.

    >>> batch = Pad(0)([{"input_ids": [5, 6, 7], "labels": [5, 6, 7]}, {"input_ids": [8], "labels": [8]}])
    >>> batch["labels"].tolist(), batch["attention_mask"].tolist()
    ([[5, 6, 7], [8, -100, -100]], [[1, 1, 1], [1, 0, 0]])
    """

    pad_id: int = 0
    left: bool = False
    masks: Mapping[str, str] = field(default_factory=dict)
    fill: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        rows = {name: [_whole(example[name]) for example in examples] for name in examples[0]}
        masks = dict(self.masks)
        if len({len(row) for row in rows.get("input_ids", [])}) > 1:
            masks["input_ids"] = "attention_mask"
        for name, mask in masks.items():
            rows.setdefault(mask, [torch.ones(len(row), dtype=torch.long) for row in rows[name]])
        filled = {**_FILL, **dict.fromkeys(masks.values(), 0), **self.fill}
        return {name: self._padded(row, filled.get(name, self.pad_id)) for name, row in rows.items()}

    def _padded(self, rows: list[Tensor], fill: int) -> Tensor:
        if rows[0].dim() == 0:
            return torch.stack(rows)
        value, side = 0 if rows[0].is_floating_point() else fill, "left" if self.left else "right"
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value, padding_side=side)


def _whole(value: Any) -> Tensor:
    """As a tensor; whole numbers as the long ones that models want."""
    tensor = torch.as_tensor(value)
    return tensor.long() if tensor.dtype in (torch.int32, torch.int16) else tensor
