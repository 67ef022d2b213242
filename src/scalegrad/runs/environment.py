"""Where figures come from: versions, hardware, the state of the source tree, the command and the date."""

from __future__ import annotations

import ctypes
import datetime
import gc
import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scalegrad._version import __version__
from scalegrad.counts import counted

PACKAGES = ("transformers", "tokenizers", "accelerate", "safetensors", "datasets", "peft", "triton", "numpy")


def environment() -> dict[str, Any]:
    """All of it, for a run's record."""
    import torch

    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command_line(sys.argv),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "hardware": hardware(device.type if device else "cpu"),
        "system": platform.platform(),
        "versions": versions(PACKAGES),
        "git": git_state(Path.cwd()),
    }


def command_line(argv: Sequence[str]) -> str:
    """What was typed, without the folder of the program; a package run by `python -m` by its name.

    >>> command_line(["/usr/bin/scalegrad", "demo"]), command_line(["/lib/scalegrad/cli/__main__.py", "demo"])
    ('scalegrad demo', 'scalegrad demo')
    """
    program = Path(argv[0])
    name = "scalegrad" if program.name == "__main__.py" and program.parent.name == "cli" else program.name
    return shlex.join([name, *argv[1:]])


def hardware(device: str = "cpu") -> str:
    """The processor by name, and how many cores."""
    import torch

    if device == "cuda":
        count = torch.cuda.device_count()
        return torch.cuda.get_device_name() + (f" × {count}" if count > 1 else "")
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0] if models else name
    return f"{name}, {counted(os.cpu_count() or 1, 'core')}"


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Of Python, torch, scalegrad and `packages`; "" for one that is not installed."""
    import torch

    found = {"python": platform.python_version(), "torch": torch.__version__, "scalegrad": __version__}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = ""
    return found


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit of the repository that holds `folder`, and whether files differ from it; None outside of one."""

    def ask(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    try:
        return {"commit": ask("rev-parse", "HEAD"), "changed": bool(ask("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None


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
