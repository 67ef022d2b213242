"""How much memory is left."""

from __future__ import annotations

import os
from pathlib import Path

import torch


def free_memory(device: torch.device) -> int:
    """Bytes that can still be taken on `device`; where the system does not say, 4 GiB."""
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        free, whole = torch.cuda.mem_get_info(device)
        own = torch.cuda.get_per_process_memory_fraction(device) * whole - torch.cuda.memory_allocated(device)
        return int(min(free, own))
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        free = 4 * 2**30
    limits = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:  # a container may have less than its machine
        limit, used = (path.read_text().strip() for path in limits)
        return min(free, int(limit) - int(used)) if limit != "max" else free
    except (OSError, ValueError):
        return free
