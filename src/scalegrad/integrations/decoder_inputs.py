"""What a decoder reads while it trains: its labels, one place later, as the model's own forward makes it of them."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from torch import Tensor


def decoder_inputs(model: Any, labels: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
    """`decoder_input_ids`, and where the model masks padding in them (EncoderDecoderModel, Pix2Struct) that mask."""
    ids = _shifted_right(model, labels)
    made = {"decoder_input_ids": ids}
    if mask is None and model.config.model_type in ("encoder-decoder", "pix2struct"):
        made["decoder_attention_mask"] = (ids != model.config.pad_token_id).to(ids.dtype)
        if model.config.model_type == "pix2struct":
            made["decoder_attention_mask"][:, 0] = 1  # it starts with the padding symbol
    return made


def _shifted_right(model: Any, labels: Tensor) -> Tensor:
    for name in ("prepare_decoder_input_ids_from_labels", "_shift_right"):
        method = getattr(model, name, None)
        if method is not None:
            ids: Tensor = method(labels)
            return ids
    shift = getattr(sys.modules[type(model).__module__], "shift_tokens_right", None)  # of the file of the model
    if shift is None:
        raise ValueError(f"decoder_input_ids must be given: {type(model).__name__} does not say how to make them")
    config = model.config
    symbols = (config.pad_token_id, getattr(config, "decoder_start_token_id", None))
    shifted: Tensor = shift(labels, *symbols[: len(inspect.signature(shift).parameters) - 1])
    return shifted
