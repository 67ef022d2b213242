"""How many prefixes fit into memory at once: an estimate to begin with, and telling when it was too high."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from scalegrad._memory import free_memory

Part = TypeVar("Part")

_SHARE = 0.5  # of the free memory, for what the estimate leaves out
_MOST = {"cpu": 32, "accelerator": 2048}  # more rows stop paying off


def batch_estimate(model: Any, tokens: int, beams: int) -> int:
    """A power of two: how many rows of `tokens` (prompt and new) fit into half of the free memory.

    A row holds the keys and values of every token and layer, and a few float32 copies of its next-token scores.
    """
    config = model.config.get_text_config(decoder=True)
    layers = getattr(config, "num_hidden_layers", 12)
    width = getattr(config, "hidden_size", 1024)
    heads = getattr(config, "num_attention_heads", 1)
    shared = getattr(config, "num_key_value_heads", None) or heads
    cache = 2 * layers * width * shared // heads * model.dtype.itemsize * tokens
    scores = 10 * 4 * getattr(config, "vocab_size", 50_000)
    fitting = int(_SHARE * free_memory(model.device) / (beams * (cache + scores)))
    most = max(1, _MOST["cpu" if model.device.type == "cpu" else "accelerator"] // beams)
    return int(2 ** (max(1, min(fitting, most)).bit_length() - 1))


def gpu_shares(each: int, most: int) -> int:
    """How many processes, `most` at most, can share the first GPU with `each` bytes of its memory for every one."""
    return max(1, min(most, torch.cuda.get_device_properties(0).total_memory // each))


def out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that memory ran out: on a CPU torch raises a plain RuntimeError."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("can't allocate memory" in text or "not enough memory" in text)


def in_batches(
    total: int, size: int, work: Callable[[slice], Part], progress: Callable[[int, int], None] | None = None
) -> list[Part]:
    """What `work` gives for one stretch of `total` things after the other, `size` at a time.

    Running out of memory halves the size from there on; `progress(done, total)` is called after every stretch.

    >>> in_batches(5, 2, lambda places: list(range(9))[places])
    [[0, 1], [2, 3], [4]]
    """
    done, found = 0, []
    while done < total:
        places = slice(done, min(done + size, total))
        try:
            found.append(work(places))
        except Exception as error:
            if not out_of_memory(error) or size == 1:
                raise
            size //= 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            continue
        done = places.stop
        if progress:
            progress(done, total)
    return found
