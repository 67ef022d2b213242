"""What has been said so far, row by row: the prompt, the generated text, and neither padding nor start symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scalegrad.decoding.strategies import SEEN, Seen
from scalegrad.models.pretrained import end_ids

NOTHING = -1  # the id of a position that does not count


@dataclass(frozen=True)
class History:
    """Which ids count as said, for a batch that `generate` is extending.

    `prompt`: [B, P] ids that were there before the first new token (a causal LM's prefix, an encoder's source),
    -1 where a position is padding or the symbol a causal LM's prefix starts with.
    `start`: how many columns of `generate`'s running `input_ids` are not generated.
    `joined`: whether the new tokens continue the prompt (a causal LM), so that an n-gram may span the two.
    `seen`: "all" (prompt and generated), "generated" or "prompt". `ends`: ids that end a text.

    >>> history = History(prompt=torch.tensor([[-1, 7, 8]]), start=3)
    >>> history.said(torch.tensor([[0, 7, 8, 9]]))  # one token, 9, was generated after the padded prompt 7 8
    tensor([[-1,  7,  8,  9]])
    """

    prompt: Tensor
    start: int
    joined: bool = True
    seen: Seen = "all"
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, model: Any, inputs: Mapping[str, Tensor], seen: Seen | None = None) -> History:
        """The history that `model.generate(**inputs)` starts from.

        By default a causal LM's prefix counts and an encoder-decoder's source does not, as in training.
        """
        if seen not in (None, *SEEN):
            raise ValueError(f"seen must be one of {', '.join(SEEN)}, not {seen!r}")
        separate = bool(model.config.is_encoder_decoder)
        ids = inputs.get("input_ids")
        if ids is None:
            if separate and seen in ("all", "prompt"):
                raise ValueError(f"seen={seen!r} needs input_ids, and the inputs have only {', '.join(inputs)}")
            rows = next(value.shape[0] for value in inputs.values() if isinstance(value, Tensor))
            prompt = torch.empty((rows, 0), dtype=torch.long)
        else:
            mask = inputs.get("attention_mask")
            prompt = ids if mask is None else ids.masked_fill(mask == 0, NOTHING)
            prompt = prompt if separate else _without_start(prompt, model.generation_config.bos_token_id)
        default: Seen = "generated" if separate else "all"
        start = _start(model, inputs, separate)
        return cls(prompt, start, joined=not separate, seen=seen or default, ends=end_ids(model))

    def generated(self, input_ids: Tensor) -> Tensor:
        """[R, L] running ids -> [R, L - start] new ones."""
        return input_ids[:, self.start :]

    def said(self, input_ids: Tensor) -> Tensor:
        """[R, L] running ids -> [R, H] the ids that count as seen, -1 for holes. R is B, or B times the beams."""
        parts = []
        if self.seen != "generated":
            parts.append(self._prompt_rows(input_ids))
        if self.seen == "all" and not self.joined:
            parts.append(input_ids.new_full((input_ids.shape[0], 1), NOTHING))  # no n-gram spans source and output
        if self.seen != "prompt":
            parts.append(self.generated(input_ids))
        return torch.cat(parts, dim=1)

    def running(self, input_ids: Tensor) -> Tensor:
        """[R, L] running ids -> [R, M] the text a new token continues, -1 for padding and start symbols."""
        if not self.joined or self.seen == "generated":
            return self.generated(input_ids)
        return torch.cat([self._prompt_rows(input_ids), self.generated(input_ids)], dim=1)

    def _prompt_rows(self, input_ids: Tensor) -> Tensor:
        beams = input_ids.shape[0] // self.prompt.shape[0]
        return self.prompt.to(input_ids.device).repeat_interleave(beams, dim=0)


def _without_start(prompt: Tensor, symbol: int | None) -> Tensor:
    """[B, P] ids, the start symbol masked where it is the first of its row: nobody said it."""
    if symbol is None:
        return prompt
    first = (prompt >= 0).cumsum(dim=1) == 1  # padding after it counts as first too, and is masked already
    return prompt.masked_fill(first & (prompt == symbol), NOTHING)


def _start(model: Any, inputs: Mapping[str, Tensor], separate: bool) -> int:
    """How many columns `generate`'s running ids have before the first new token."""
    if not separate:
        if (ids := inputs.get("input_ids")) is not None:
            return int(ids.shape[1])
        return 0 if "inputs_embeds" in inputs else 1  # 1: generate begins with the beginning-of-sequence id
    if (given := inputs.get("decoder_input_ids")) is None:
        return 1
    first = model.generation_config.decoder_start_token_id
    first = model.generation_config.bos_token_id if first is None else first
    if bool((given[:, 0] != first).any()):
        raise ValueError(f"decoder_input_ids must begin with the decoder start id {first}, not {given[:, 0].tolist()}")
    return int(given.shape[1])
