"""A trained captioner and its tokenizer, from a folder."""

from __future__ import annotations

from typing import Any

from scalegrad.extras import need
from scalegrad.models.pretrained import find_device, find_place


def load_captioner(name: str) -> tuple[Any, Any]:
    """Captioner and tokenizer from a run's folder, or one that `save_pretrained` wrote; on the accelerator."""
    folder = find_place(name)
    if folder is None or not (folder / "config.json").is_file():
        raise FileNotFoundError(f"model: {name} holds no captioner: expected the folder of a run, or of a saved model")
    hf = need("transformers", extra="caption")
    from scalegrad.tasks.captioning.captioner import Captioner, CaptionerConfig

    config = CaptionerConfig.from_pretrained(str(folder))
    if config.model_type != CaptionerConfig.model_type or not (folder / "model.safetensors").is_file():
        raise ValueError(f"{name} holds no captioner (its config.json is another model's, or the weights are missing)")
    try:
        model = Captioner.from_pretrained(str(folder))
        tokenizer = hf.PreTrainedTokenizerFast.from_pretrained(str(folder))
    except (OSError, ValueError, need("safetensors", extra="caption").SafetensorError) as error:
        raise ValueError(f"{name}: the captioner cannot be read ({str(error).splitlines()[0]})") from None
    return model.to(find_device()).eval(), tokenizer
