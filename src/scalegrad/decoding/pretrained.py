"""A generating model and its tokenizer, by hub name or from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from scalegrad._extras import need

DTYPES = ("auto", "float32", "bfloat16", "float16")


def load(name: str, device: str = "auto", dtype: str = "auto", trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Model and tokenizer, ready to generate: a causal LM, or an encoder-decoder where the config says so.

    `name` is a folder written by `save_pretrained` or a hub name. `device`: "auto" takes an accelerator if there is
    one. `dtype`: "auto" is the checkpoint's own, on a CPU float32. Nothing a checkpoint brings is executed unless
    `trust_remote_code`. A checkpoint that lacks weights is refused: they would be random.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    place = _device(device)
    if name.startswith((".", "/", "~")) and not Path(name).expanduser().exists():
        raise FileNotFoundError(f"model: there is no folder {name}")
    hf = need("transformers", extra="hf")
    wanted = ("float32" if place.type == "cpu" else "auto") if dtype == "auto" else dtype
    options = {"trust_remote_code": trust_remote_code}
    folder = str(Path(name).expanduser()) if Path(name).expanduser().exists() else name
    try:
        config = hf.AutoConfig.from_pretrained(folder, **options)
        kind = hf.AutoModelForSeq2SeqLM if config.is_encoder_decoder else hf.AutoModelForCausalLM
        tokenizer = hf.AutoTokenizer.from_pretrained(folder, **options)
        model, info = kind.from_pretrained(folder, dtype=wanted, output_loading_info=True, **options)
    except need("safetensors", extra="hf").SafetensorError as error:
        raise ValueError(f"model: the weights of {name} cannot be read ({error})") from None
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split(". ")[0].split())
        raise ValueError(f"model: {name} cannot be loaded as a language model ({reason})") from None
    if info["missing_keys"]:
        some = ", ".join(sorted(info["missing_keys"])[:3])
        raise ValueError(f"model: {name} lacks {len(info['missing_keys'])} weights a language model needs ({some}, …)")
    return model.to(place).eval(), tokenizer


def _device(name: str) -> torch.device:
    if name == "auto":
        current = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return current or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {name!r} cannot be used here ({str(error).splitlines()[0]})") from None
    return device
