"""The command line as a process of its own that can be killed or held to limits; loaded once, then forked."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import sys
from pathlib import Path

server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(["torch", "transformers", "scalegrad.training.trainer", __name__])


def run(arguments: list[str], errors: str, file_size: int | None = None, powerless: bool = False) -> None:
    """In the forked process: `scalegrad ARGUMENTS`, with what it says on standard error in a file."""
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 2)
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    if powerless:
        _drop_power_over_permissions()
    import torch

    from scalegrad.cli import main

    torch.set_num_threads(1)  # sums depend on the number of threads in their last bit
    sys.argv = ["scalegrad", *arguments]
    main(arguments)


def _drop_power_over_permissions() -> None:
    """root obeys file permissions like everyone else from here on."""
    if os.geteuid() != 0:
        return

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Data(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]

    libc = ctypes.CDLL(None, use_errno=True)
    header, data = Header(0x20080522, 0), (Data * 2)()
    if libc.capget(ctypes.byref(header), data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    for part in data:
        part.effective = 0
    if libc.capset(ctypes.byref(header), data) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def start(arguments: list[object], folder: Path, **limits: object) -> multiprocessing.Process:
    process = server.Process(target=run, args=(list(map(str, arguments)), str(folder / "errors.txt")), kwargs=limits)
    process.start()
    return process


def finished(arguments: list[object], folder: Path, **limits: object) -> tuple[int | None, str]:
    """(exit code, standard error) of a whole run."""
    process = start(arguments, folder, **limits)
    process.join(240)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode, (folder / "errors.txt").read_text()
