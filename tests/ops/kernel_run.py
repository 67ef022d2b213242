"""Runs checks of the kernels in a process of their own, and is what that process runs.

A kernel that reads or writes where it may not can take its process with it; Triton's interpreter must be chosen before
Triton is imported; and a GPU compiles some dozens of kernels here, faster side by side. By hand:

    TRITON_INTERPRET=1 python -m tests.ops.kernel_run cpu CE,SG,UL vocabularies
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from tests.ops import kernel_checks, kernel_gpu, kernel_linear, kernel_memory

ROOT = Path(__file__).parents[2]
LOGITS = ("vocabularies", "sets", "settings", "sizes", "extremes", "leads", "nan")
MEMORY = ("views", "writes", "ranges", "lengths", "no_token", "scaling")
SIZES, GRAPHS = ("practice", "documents", "steady", "memory"), ("waiting", "captured", "compiled", "twice")
CHECKS = {
    **{name: getattr(kernel_checks, name) for name in LOGITS},
    **{name: getattr(kernel_memory, name) for name in MEMORY},
    "linear": kernel_linear.linear,
}
GPU_CHECKS = {name: getattr(kernel_gpu, name) for name in (*SIZES, *GRAPHS)}

# (objectives, checks). What a row discourages is a short list of tokens or, if that may be long, a bit for every token.
ALL, BITS = ("CE", "SG", "UL"), ("SG by bits", "UL by bits")
GROUPS = (
    (ALL, ("vocabularies",)),
    (ALL, ("sets", "settings")),
    (ALL, ("sizes", "extremes", "leads")),
    (ALL, ("nan", *MEMORY)),
    (ALL, ("linear",)),
    (BITS, ("vocabularies", "sets")),
    (BITS, ("settings", "sizes", "extremes", "leads", "ranges", "no_token")),
)
SHARES = (("vocabularies",), ("sets", "sizes"), ("settings", "leads"), ("extremes", "nan"), MEMORY, ("linear",))
GPU_GROUPS = (  # smaller: most of their time goes into compiling kernels, and that on all cores
    *(((objective,), names) for names in (*SHARES, SIZES, GRAPHS) for objective in ALL),
    *(
        ((objective,), names)
        for names in (("vocabularies", "ranges", "no_token"), ("sets", "leads", "sizes"), ("settings", "extremes"))
        for objective in BITS
    ),
)
Group = tuple[tuple[str, ...], tuple[str, ...]]


def name_of(group: Group) -> str:
    return f"{' '.join(group[0])}: {' '.join(group[1])}"


def start(device: str, group: Group) -> subprocess.Popen[str]:
    """A process that runs these checks on "cpu", in the interpreter, or on "cuda"."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    path = [str(ROOT), str(ROOT / "src"), *filter(None, [environment.get("PYTHONPATH")])]
    environment |= {"PYTHONPATH": os.pathsep.join(path), "TRITON_DEFAULT_FP_FUSION": "1"}
    environment |= {"TRITON_INTERPRET": "1"} if device == "cpu" else {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    ignored = ("RuntimeWarning", "DeprecationWarning")  # numpy's: of overflow, which is meant, and at Triton's own code
    warnings = ["-W", "error", *(f"-Wignore::{name}" for name in ignored)]
    flags = ["-X", "faulthandler", *(warnings if device == "cpu" else [])]
    command = [sys.executable, *flags, "-m", "tests.ops.kernel_run", device, ",".join(group[0]), *group[1]]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **pipes)


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for it; its output is the error's text if a check failed."""
    try:
        output, _ = process.communicate(timeout=600)
    except BaseException:  # a process of ours must not outlive us
        process.kill()
        raise
    assert process.returncode == 0, f"exit code {process.returncode}\n{output[-4000:]}"


# ---- in the process itself -------------------------------------------------------------------------------------------


def prepare(device: str, bits: bool) -> None:
    """From here on uninitialised memory holds NaN; in the interpreter tiles are small enough for it."""
    from scalegrad.ops import triton_logits

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert triton_logits.MOST_LISTED > 0
    if bits:
        triton_logits.MOST_LISTED = 0
    if device == "cpu":
        triton_logits.WARPS = 1
        mend_the_interpreter()


def mend_the_interpreter() -> None:
    """Round a fused multiply-add once, as a GPU does (Triton 3.6 rounds twice). And run three times faster: patch the
    language once for each module rather than whenever one function calls another, and test no integer for overflow."""
    import numpy as np
    from triton.runtime import interpreter

    def fma(builder, x, y, z):
        exact = x.data.astype(np.float64) * y.data + z.data
        return interpreter.TensorHandle(exact.astype(z.data.dtype), z.dtype.scalar)

    patched = set()

    def call(function, *args, **kwargs):
        if function.fn.__module__ not in patched:
            interpreter._patch_lang(function.fn)
            patched.add(function.fn.__module__)
        return function.rewrite()(*args, **kwargs)

    interpreter.InterpreterBuilder.create_fma = fma
    interpreter.InterpretedFunction.__call__ = call
    object.__setattr__(interpreter.interpreter_builder.options, "sanitize_overflow", False)


if __name__ == "__main__":
    where, which, *names = sys.argv[1:]
    prepare(where, bits=which.endswith("by bits"))
    which = tuple(objective.split()[0] for objective in which.split(","))
    for name in names:
        began = time.perf_counter()
        (CHECKS | GPU_CHECKS)[name](where, which)
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)
