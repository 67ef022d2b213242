"""Results as a table on the screen and as data under `benchmarks/`: hardware, versions and date with every line."""

from __future__ import annotations

import csv
import datetime
import io
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import torch

from scalegrad._version import __version__
from scalegrad.bench.runner import Measurement


def hardware(device: str = "cpu") -> str:
    """The processor by name, and how many cores."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0] if models else name
    return f"{name}, {os.cpu_count()} cores"


def print_table(title: str, measurements: Sequence[Measurement]) -> None:
    """Case by case, the first line of each is what the others are compared with."""
    print(f"\n{title}")
    width = max(len(m.name) for m in measurements)
    print(f"{'':{width}}   {'ms':>9}  {'±':>4}  {'time':>6}  {'MiB':>8}  {'memory':>6}")
    for m in measurements:
        memory = "–" if m.extra_bytes is None else f"{m.extra_bytes / 2**20:.0f}"
        ratio = "–" if m.bytes_ratio is None else f"{m.bytes_ratio:.2f}×"
        milliseconds = f"{m.seconds * 1e3:9.3f}"
        print(f"{m.name:{width}}   {milliseconds}  {m.spread:4.0%}  {m.seconds_ratio:5.2f}×  {memory:>8}  {ratio:>6}")


def save(path: Path, measurements: Sequence[Measurement], device: str = "cpu", **more: str) -> None:
    """A CSV, replaced whole."""
    about = {
        "date": datetime.date.today().isoformat(),
        "hardware": hardware(device),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scalegrad": __version__,
        **more,
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*about, "case", "implementation", "ms", "spread", "extra_mib", "time_ratio", "memory_ratio"])
    for m in measurements:
        mib = "" if m.extra_bytes is None else f"{m.extra_bytes / 2**20:.1f}"
        ratio = "" if m.bytes_ratio is None else f"{m.bytes_ratio:.4f}"
        numbers = (f"{m.seconds * 1e3:.4f}", f"{m.spread:.4f}", mib, f"{m.seconds_ratio:.4f}", ratio)
        writer.writerow([*about.values(), m.case, m.name, *numbers])
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    new.write_text(text.getvalue())
    new.replace(path)
