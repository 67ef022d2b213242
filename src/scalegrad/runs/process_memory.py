"""How much memory this process takes, and took at most since it was last asked to forget (Linux)."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path


def give_back_memory() -> None:
    """Return what nothing uses to the system: what is kept for later would hide what a piece of work takes."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc's
    if trim is not None:
        trim(0)


def forget_peak() -> bool:
    """Let the high-water mark start from what is in use now; False where the system cannot do that.

    The mark is one of the whole life of a process: not started anew, it tells of whatever was done before.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return peak_bytes() > 0
    except OSError:
        return False


def resident_bytes() -> int:
    """What is in memory now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """What was in memory at most since `forget_peak`."""
    return _status("VmHWM")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")
