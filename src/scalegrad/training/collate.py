"""Examples of unequal length as one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_FILL = {"labels": -100, "attention_mask": 0, "decoder_attention_mask": 0}


@dataclass(frozen=True)
class Pad:
    """Pad every field on the right to the longest of the batch; labels with -100, the rest with `pad_id`.

    An attention mask is added where an input needs padding and the examples bring none.

    >>> batch = Pad(0)([{"input_ids": [5, 6, 7], "labels": [5, 6, 7]}, {"input_ids": [8], "labels": [8]}])
    >>> batch["labels"].tolist(), batch["attention_mask"].tolist()
    ([[5, 6, 7], [8, -100, -100]], [[1, 1, 1], [1, 0, 0]])
    """

    pad_id: int = 0

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        columns = {name: [torch.as_tensor(example[name]) for example in examples] for name in examples[0]}
        batch = {name: self._padded(name, rows) for name, rows in columns.items()}
        lengths = [len(row) for row in columns.get("input_ids", [])]
        if "attention_mask" not in batch and len(set(lengths)) > 1:
            steps = torch.arange(max(lengths))
            batch["attention_mask"] = (steps < torch.tensor(lengths)[:, None]).long()
        return batch

    def _padded(self, name: str, rows: list[Tensor]) -> Tensor:
        if rows[0].dim() == 0:
            return torch.stack(rows)
        value = _FILL.get(name, self.pad_id)
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
