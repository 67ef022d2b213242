"""The kernels on a GPU: the checks of test_triton.py and those that only a GPU can answer, side by side in processes.

It needs neither pytest nor an installation: `python3 tests/ops/test_triton_gpu.py` prints a line for each group.
"""

import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "src")]

import torch

from tests.ops import kernel_run

MISSING = None if torch.cuda.is_available() else "no CUDA device"
if MISSING is None and find_spec("triton") is None:
    MISSING = "Triton is not installed"


@cache
def running() -> dict[str, Future[float]]:
    """All groups at once, as many as there are cores."""
    pool = ThreadPoolExecutor(os.cpu_count())
    return {kernel_run.name_of(group): pool.submit(_seconds, group) for group in kernel_run.GPU_GROUPS}


def _seconds(group: kernel_run.Group) -> float:
    began = time.perf_counter()
    kernel_run.finish(kernel_run.start("cuda", group))
    return time.perf_counter() - began


def test_kernels_on_a_gpu(group):
    running()[kernel_run.name_of(group)].result()


def test_every_check_runs_on_a_gpu():
    names = {name for _, names in kernel_run.GPU_GROUPS for name in names}
    assert names == set(kernel_run.CHECKS) | set(kernel_run.GPU_CHECKS)


if find_spec("pytest"):
    import pytest

    groups = pytest.mark.parametrize("group", kernel_run.GPU_GROUPS, ids=kernel_run.name_of)
    test_kernels_on_a_gpu = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))(groups(test_kernels_on_a_gpu))

if __name__ == "__main__":
    if MISSING:
        sys.exit(f"skipped: {MISSING}")
    failures = 0
    for name, result in running().items():
        try:
            print(f"ok      {name} ({result.result():.0f} s)", flush=True)
        except AssertionError as error:
            failures += 1
            print(f"FAILED  {name}\n{error}", flush=True)
    sys.exit(f"{failures} failed" if failures else 0)
