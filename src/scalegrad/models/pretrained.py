"""A generating model and its tokenizer, by hub name, from a folder or from a GGUF file."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalegrad._hub import hub_problem
from scalegrad.counts import counted
from scalegrad.extras import need
from scalegrad.models import base
from scalegrad.models.gguf_header import read_header

if TYPE_CHECKING:
    import torch

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How a model is loaded."""

    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps, …"""
    dtype: str = "auto"
    """auto, float32, bfloat16 or float16."""
    trust_remote_code: bool = False
    """Execute code that comes with the model."""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}")


def load(name: str, device: str = "auto", dtype: str = "auto", trust_remote_code: bool = False) -> tuple[Any, Any]:
    """Model and tokenizer, ready to generate: a causal LM, or an encoder-decoder where the config says so.

    `name` is a folder written by `save_pretrained`, the folder of a finished run, a GGUF file (or a folder that holds
    one and nothing else to load), a hub name, or "base", the model that ships with the package. `device`: "auto" takes
    an accelerator if there is one. `dtype`: "auto" is the checkpoint's own, on a CPU float32; GGUF weights are
    de-quantised. Nothing a checkpoint brings is executed unless `trust_remote_code`. A checkpoint that lacks weights is
    refused: they would be random. The model stops at its tokenizer's end symbol, whatever else its checkpoint names:
    that is what training teaches.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
    place = find_device(device)
    wanted = ("float32" if place.type == "cpu" else "auto") if dtype == "auto" else dtype
    hf = need("transformers", extra="hf")
    source, options = _source(name, trust_remote_code)
    config = load_config(name, trust_remote_code)
    tokenizer = load_tokenizer(name, trust_remote_code, config)
    kind = hf.AutoModelForSeq2SeqLM if config.is_encoder_decoder else hf.AutoModelForCausalLM
    with _refusals(name):
        model, info = kind.from_pretrained(source, dtype=wanted, output_loading_info=True, **options)
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


def find_place(name: str) -> Path | None:
    """The folder or file that `name` stands for: of a run's folder that of its model; None for a name of the hub."""
    path = base.path() if name == base.NAME else Path(name).expanduser()  # a folder called so is ./base
    if name.startswith((".", "/", "~")) and not path.exists():
        raise FileNotFoundError(f"model: there is no file or folder {name}")
    if path.is_dir() and not any(path.iterdir()):
        raise ValueError(f"model: {name} is an empty folder; expected one that a model was saved to")
    if not is_run(name):
        return path if path.exists() else None
    if not (path / "done.json").exists():
        raise ValueError(f"model: the run in {name} has not finished; train it to its end first (the command goes on)")
    return path / "model"


def is_run(name: str) -> bool:
    """Whether `name` is the folder of a run, with its model inside."""
    folder = Path(name).expanduser()
    return name != base.NAME and all((folder / file).is_file() for file in ("config.json", "environment.json"))


def check_causal(name: str) -> None:
    """Refuse what is not there, and an encoder-decoder, by its config.json alone: neither library nor weights load."""
    place = find_place(name)
    if place is None:
        cached = need("huggingface_hub", extra="hf").try_to_load_from_cache(name, "config.json")
        if not isinstance(cached, str):
            if problem := hub_problem():
                raise _not_here(name, problem)
            return
        place = Path(cached).parent
    if place.is_dir() and (place / "config.json").is_file():
        config = json.loads((place / "config.json").read_text(encoding="utf-8"))
        if config.get("is_encoder_decoder"):
            raise ValueError(f"model: {name} is an encoder-decoder; expected a causal language model")


def _not_here(name: str, problem: str) -> ValueError:
    return ValueError(f"model: {name} is no file or folder here, nor whole in the hub's cache, and {problem}")


def _forget_quantisation(model: Any) -> None:
    """De-quantised weights are weights like any other; the library goes on calling the model quantised."""
    quantizer = getattr(model, "hf_quantizer", None)
    if quantizer is not None:
        quantizer.remove_quantization_config(model)
    for module in model.modules():
        getattr(module, "config", model.config).__dict__.pop("_is_quantized", None)


def load_config(name: str, trust_remote_code: bool = False) -> Any:
    """The configuration alone of what `load` takes: what a model is, known before its weights are loaded."""
    hf = need("transformers", extra="hf")
    source, options = _source(name, trust_remote_code)
    with _refusals(name):
        return hf.AutoConfig.from_pretrained(source, **options)


def load_tokenizer(name: str, trust_remote_code: bool = False, config: Any = None) -> Any:
    """The tokenizer alone of what `load` takes; with `config`, one that is larger than the model is refused."""
    hf = need("transformers", extra="hf")
    source, options = _source(name, trust_remote_code)
    if "gguf_file" not in options and Path(source).is_dir() and not _tokenizer_files(Path(source)):
        raise _no_tokenizer(name)
    with _refusals(name):
        tokenizer = hf.AutoTokenizer.from_pretrained(source, **options)
        if "gguf_file" in options:
            _follow_header(tokenizer, read_header(Path(source) / options["gguf_file"]))
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise _no_tokenizer(name)  # of such a folder the library makes an empty one, which encodes a text as nothing
    if config is not None:
        check_vocabulary(tokenizer, config, f"model: {name}")
    return tokenizer


def wants_start(header: dict[str, Any]) -> bool | None:
    """Whether a GGUF file wants a start symbol before every text; None where the library decides.

    Where the file does not say, the tokenizer's kind does: SentencePiece models and Llama 3 were trained with one.
    """
    assumed = header.get("tokenizer.ggml.model") == "llama" or header.get("tokenizer.ggml.pre") == "llama-bpe"
    return header.get("tokenizer.ggml.add_bos_token", True if assumed else None)


def check_vocabulary(tokenizer: Any, config: Any, name: str) -> None:
    """A ValueError if a text may become ids that the model has no weights for.

    A special symbol beyond the vocabulary is no harm as long as nobody writes it: Gemma 3 has one, for images.
    """
    size = int(config.get_text_config(decoder=True).vocab_size)
    special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    special -= {tokenizer.bos_token, tokenizer.eos_token}  # these are written
    beyond = [token for token, number in tokenizer.get_vocab().items() if number >= size and token not in special]
    if beyond:
        raise ValueError(
            f"{name} has a vocabulary of {size:,}, and its tokenizer {len(tokenizer):,} ids ({beyond[0]!r}, …); "
            "take the tokenizer the model was trained with, or resize the model's embeddings"
        )


def _follow_header(tokenizer: Any, header: dict[str, Any]) -> None:
    """Take the end symbol and the habit of a start symbol from the file: the library ignores both (5.17, 5.22)."""
    end = header.get("tokenizer.ggml.eos_token_id")
    if end is not None and tokenizer.eos_token_id != end:
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    wanted = wants_start(header)
    if wanted is not None and wanted != bool(start_ids(tokenizer)):
        tokenizer.add_bos_token = wanted


def _tokenizer_files(folder: Path) -> list[Path]:
    return [file for pattern in ("*token*", "*vocab*", "*.model") for file in folder.glob(pattern)]


def _no_tokenizer(name: str) -> ValueError:
    return ValueError(f"model: {name} holds no tokenizer; save it there too: tokenizer.save_pretrained({name!r})")


def _source(name: str, trust_remote_code: bool) -> tuple[str, dict[str, Any]]:
    """What to give `from_pretrained`: a folder or a hub name, and options."""
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    path = find_place(name)
    if path is None:
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
            raise _not_here(name, silent) from None
        reason = " ".join(str(error).split(". ")[0].split())
        raise ValueError(f"model: {name} cannot be loaded as a language model ({reason})") from None


def find_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" is the accelerator where there is one, else the CPU."""
    import torch

    if name == "auto":
        current = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return current or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {name!r} cannot be used here ({str(error).splitlines()[0]})") from None
    return device


def end_ids(model: Any) -> tuple[int, ...]:
    """The ids that end a text."""
    ends = model.generation_config.eos_token_id
    return () if ends is None else tuple(ends) if isinstance(ends, list) else (ends,)


STARTS = ("auto", "yes", "no")


def start_ids(tokenizer: Any, start: str = "auto") -> tuple[int, ...]:
    """The ids to put before a text: none for most models, one for those that begin every text with a symbol.

    "auto" is what the tokenizer does when it encodes a text with special tokens: Gemma's and Llama's put a symbol
    before it, GPT-2's does not. "yes" takes the tokenizer's start symbol in any case, "no" takes none.
    """
    check_start(start)
    if start == "no":
        return ()
    ids = _ids_before_a_text(tokenizer)
    if ids or start == "auto":
        return ids
    if tokenizer.bos_token_id is None:
        raise ValueError("start is yes, and the tokenizer has no start symbol")
    return (tokenizer.bos_token_id,)


def check_start(start: str) -> None:
    """Refuse any other word, before a model is loaded."""
    if start not in STARTS:
        raise ValueError(f"start must be auto, yes or no, not {start!r}")


def start_text(tokenizer: Any, ids: tuple[int, ...]) -> str | None:
    """The symbol in letters, for records and sentences; None where there is none."""
    return "".join(tokenizer.convert_ids_to_tokens(list(ids))) or None


def start_sentence(tokenizer: Any, start: str, text: str | None) -> str:
    """One line that says what a model was given, and how to have it otherwise."""
    if text:
        why = "the tokenizer adds it" if start == "auto" else f"--start {start}"
        return f"start symbol: {text} before every text ({why}; --start no leaves it out)"
    other = "" if tokenizer.bos_token is None else f"; --start yes puts {tokenizer.bos_token} before every text"
    return f"start symbol: none ({'the tokenizer adds none' if start == 'auto' else '--start no'}{other})"


def _ids_before_a_text(tokenizer: Any) -> tuple[int, ...]:
    whole = list(tokenizer("a")["input_ids"])
    alone = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    places = (at for at in range(len(whole)) if whole[at : at + len(alone)] == alone)
    return tuple(whole[: next(places, 0)])


def weights_checksum(model: Any) -> str:
    """A checksum of every weight, the same on any device: names, shapes and the exact sum of the bits as integers."""
    import torch

    digest = hashlib.blake2b(digest_size=8)
    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    for name, weight in sorted(model.state_dict().items()):
        bits = weight.detach().contiguous().view(whole[weight.element_size()]).sum(dtype=torch.int64).item()
        digest.update(f"{name} {tuple(weight.shape)} {bits}\n".encode())
    return digest.hexdigest()
