"""Keys and values of a growing text, with room for all of it from the start.

The library's own cache puts a token beside the earlier ones by copying all of them, in every layer and at every step:
with many texts at once most of what a GPU moves. Here a token is written where it belongs, and what it joins stays.
"""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from scalegrad.extras import need


def roomy_cache(model: Any, tokens: int) -> Any:
    """An empty cache for `model` and texts of `tokens` (prompt and new); None where the library's own must do.

    Layers that are no plain ones (of a sliding window, say) are the library's. Longer texts make it grow.
    """
    config = model.generation_config
    plain = (
        not model.config.is_encoder_decoder and config.use_cache is not False and config.cache_implementation is None
    )
    if not plain or not model._supports_default_dynamic_cache() or not _takes_one(model):
        return None
    library = need("transformers.cache_utils", extra="hf")
    found = library.DynamicCache(config=model.config.get_text_config(decoder=True))
    spare: list[Tensor] = []
    found.layers = [_roomy_layer()(tokens, spare) if type(of) is library.DynamicLayer else of for of in found.layers]
    return found


def _takes_one(model: Any) -> bool:
    """Whether the model (an adapter's: the one inside) has a use for the cache; those of 2018 have not."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    asked = (inner.forward, inner.prepare_inputs_for_generation)
    return any("past_key_values" in signature(function).parameters for function in asked)


@cache
def _roomy_layer() -> type:
    """The layer's class; made when it is needed, for it loads the library."""

    class RoomyLayer(need("transformers.cache_utils", extra="hf").DynamicLayer):  # type: ignore[misc]
        """`keys` and `values` [B, heads, T, width] are the beginnings of two tensors of `tokens` places.

        `spare` holds such a tensor that nobody uses, for the layer that is put in another order next.
        """

        keys: Tensor
        values: Tensor

        def __init__(self, tokens: int, spare: list[Tensor]) -> None:
            super().__init__()
            self.tokens, self.spare = tokens, spare
            self.rooms: dict[str, Tensor] = {}

        def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            self.keys = self._joined("keys", self.keys, key_states)
            self.values = self._joined("values", self.values, value_states)
            return self.keys, self.values

        def reorder_cache(self, beam_idx: Tensor) -> None:
            if self.get_seq_length() > 0:
                self.keys = self._reordered("keys", self.keys, beam_idx)
                self.values = self._reordered("values", self.values, beam_idx)

        def _joined(self, name: str, held: Tensor, new: Tensor) -> Tensor:
            start = held.shape[-2] if held.numel() else 0
            end = start + new.shape[-2]
            room = self.rooms.get(name)
            if room is None or room.data_ptr() != held.data_ptr() or room.shape[-2] < end:  # the library cut or copied
                room = self.rooms[name] = new.new_empty((*new.shape[:-2], max(end, self.tokens), new.shape[-1]))
                if start:
                    room[..., :start, :] = held
            room[..., start:end, :] = new
            return room[..., :end, :]

        def _reordered(self, name: str, held: Tensor, order: Tensor) -> Tensor:
            room = self.rooms[name]
            fits = self.spare and self.spare[0].shape == room.shape and len(order) == len(room)
            target = self.spare.pop() if fits else torch.empty_like(room)
            part = target[..., : held.shape[-2], :]
            torch.index_select(held, 0, order.to(held.device), out=part)
            self.spare[:] = [room]
            self.rooms[name] = target
            return part

    return RoomyLayer
