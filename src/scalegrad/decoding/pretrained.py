"""A generating model and its tokenizer, by hub name, from a folder or from a GGUF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from scalegrad._counts import counted
from scalegrad._extras import need
from scalegrad._hub import hub_problem
from scalegrad.decoding.history import end_ids
from scalegrad.models import base

DTYPES = ("auto", "float32", "bfloat16", "float16")


def load(name: str, device: str = "auto", dtype: str = "auto", trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Model and tokenizer, ready to generate: a causal LM, or an encoder-decoder where the config says so.

    `name` is a folder written by `save_pretrained`, a GGUF file (or a folder that holds one and nothing else to load),
    a hub name, or "base", the model that ships with the package. `device`: "auto" takes an accelerator if there is
    one. `dtype`: "auto" is the checkpoint's own, on a CPU float32; GGUF weights are de-quantised. Nothing a checkpoint
    brings is executed unless `trust_remote_code`. A checkpoint that lacks weights is refused: they would be random.
    The model stops at its tokenizer's end symbol, whatever else its checkpoint names: that is what training teaches.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    place = find_device(device)
    wanted = ("float32" if place.type == "cpu" else "auto") if dtype == "auto" else dtype
    hf = need("transformers", extra="hf")
    source, options = _source(name, trust_remote_code)
    with _refusals(name):
        config = hf.AutoConfig.from_pretrained(source, **options)
        kind = hf.AutoModelForSeq2SeqLM if config.is_encoder_decoder else hf.AutoModelForCausalLM
        tokenizer = _tokenizer(hf, source, options, config)
        model, info = kind.from_pretrained(source, dtype=wanted, output_loading_info=True, **options)
    _check_vocabulary(tokenizer, name)
    if info["missing_keys"]:
        some = ", ".join(sorted(info["missing_keys"])[:3])
        raise ValueError(
            f"model: {name} lacks {counted(len(info['missing_keys']), 'weight')} a language model needs ({some}, …)"
        )
    if "gguf_file" in options:
        _forget_quantisation(model)
    ends = end_ids(model)
    if tokenizer.eos_token_id not in (None, *ends):
        model.generation_config.eos_token_id = [*ends, tokenizer.eos_token_id]
    return model.to(place).eval(), tokenizer


def _forget_quantisation(model: Any) -> None:
    """De-quantised weights are weights like any other; the library goes on calling the model quantised."""
    quantizer = getattr(model, "hf_quantizer", None)
    if quantizer is not None:
        quantizer.remove_quantization_config(model)
    for module in model.modules():
        getattr(module, "config", model.config).__dict__.pop("_is_quantized", None)


def load_tokenizer(name: str, trust_remote_code: bool = False) -> Any:
    """The tokenizer alone of what `load` takes."""
    hf = need("transformers", extra="hf")
    source, options = _source(name, trust_remote_code)
    with _refusals(name):
        tokenizer = _tokenizer(hf, source, options)
    _check_vocabulary(tokenizer, name)
    return tokenizer


def _tokenizer(hf: Any, source: str, options: dict[str, Any], config: Any = None) -> Any:
    """With the end symbol that a GGUF file names: the library (5.17) takes the one that begins a text for it."""
    tokenizer = hf.AutoTokenizer.from_pretrained(source, **options)
    if "gguf_file" in options:
        end = (config or hf.AutoConfig.from_pretrained(source, **options)).eos_token_id
        if isinstance(end, int) and tokenizer.eos_token_id != end:
            tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    return tokenizer


def _check_vocabulary(tokenizer: Any, name: str) -> None:
    """Of a folder without a tokenizer the library makes an empty one, which encodes every text as nothing."""
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ValueError(f"model: {name} holds no tokenizer; save it there too: tokenizer.save_pretrained({name!r})")


def _source(name: str, trust_remote_code: bool) -> tuple[str, dict[str, Any]]:
    """What to give `from_pretrained`: a folder or a hub name, and options."""
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    path = base.path() if name == base.NAME else Path(name).expanduser()  # a folder called so is ./base
    if name.startswith((".", "/", "~")) and not path.exists():
        raise FileNotFoundError(f"model: there is no file or folder {name}")
    if not path.exists():
        return name, options if hub_problem() is None else {**options, "local_files_only": True}
    files = sorted(path.glob("*.gguf")) if path.is_dir() and not (path / "config.json").exists() else []
    if len(files) > 1:
        raise ValueError(f"model: {name} holds {len(files)} GGUF files; name one of them ({files[0].name}, …)")
    file = files[0] if files else path if path.is_file() else None
    if file is None:
        return str(path), options
    if file.suffix != ".gguf":
        raise ValueError(f"model: {name} is a file; expected a folder, a .gguf file or a hub name")
    need("gguf", extra="gguf")
    return str(file.parent), {**options, "gguf_file": file.name}


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """One sentence for whatever the library says about a checkpoint it cannot load."""
    try:
        yield
    except need("safetensors", extra="hf").SafetensorError as error:
        raise ValueError(f"model: the weights of {name} cannot be read ({error})") from None
    except (OSError, ValueError, ImportError, KeyError, struct.error) as error:  # the last two: a broken GGUF file
        silent = None if Path(name).exists() or name == base.NAME else hub_problem()
        if isinstance(error, OSError) and silent:
            raise ValueError(
                f"model: {name} is no file or folder here, nor whole in the hub's cache, and {silent}"
            ) from None
        reason = " ".join(str(error).split(". ")[0].split())
        raise ValueError(f"model: {name} cannot be loaded as a language model ({reason})") from None


def find_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" is the accelerator where there is one, else the CPU."""
    if name == "auto":
        current = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return current or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {name!r} cannot be used here ({str(error).splitlines()[0]})") from None
    return device
