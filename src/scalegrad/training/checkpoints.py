"""Checkpoints that are whole or not there: written aside, listed in a manifest, renamed; checked before use."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scalegrad.extras import need
from scalegrad.runs.atomic import sync, write_json

MANIFEST = "manifest.json"
WRITING = ".writing"  # the folder in which a checkpoint grows
_NAME = re.compile(r"checkpoint-(\d+)")


class CheckpointError(OSError):
    """A checkpoint could not be written; the message says why, and from where the run can go on."""


def path_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of `step` lies, under the name transformers gives it."""
    return folder / f"checkpoint-{step}"


def steps(folder: Path) -> list[int]:
    """Steps whose checkpoints are there and whole, in order."""
    if not folder.is_dir():
        return []
    found = (_NAME.fullmatch(item.name) for item in folder.iterdir() if item.is_dir())
    return sorted(int(match[1]) for match in found if match and _whole(folder / match[0]))


def _whole(checkpoint: Path) -> bool:
    """Every file of the manifest is there with its size."""
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
        return all((checkpoint / name).stat().st_size == size for name, size in manifest["files"].items())
    except (OSError, ValueError, KeyError):
        return False


def tidy(folder: Path, keep: set[int]) -> None:
    """Remove every checkpoint but those of the steps in `keep`, and what a kill left half-written."""
    for item in folder.iterdir():
        match = _NAME.fullmatch(item.name)
        if item.is_dir() and ((match and int(match[1]) not in keep) or item.name.startswith(".")):
            gone = item if item.name.startswith(".") else item.rename(folder / f".old-{item.name}")
            shutil.rmtree(gone)  # renamed first: a kill in between leaves nothing that looks like a checkpoint


def seal(unfinished: Path, checkpoint: Path) -> None:
    """Sync the files of `unfinished`, list them with their sizes, and give the folder its name."""
    files = {path.relative_to(unfinished).as_posix(): path for path in sorted(unfinished.rglob("*")) if path.is_file()}
    for path in files.values():
        sync(path)
    write_json(unfinished / MANIFEST, {"files": {name: path.stat().st_size for name, path in files.items()}})
    replace_folder(unfinished, checkpoint)


def replace_folder(new: Path, path: Path) -> None:
    """`new` becomes `path`; a folder that was there is removed."""
    if path.exists():
        old = path.with_name(f".old-{path.name}")
        shutil.rmtree(old, ignore_errors=True)
        os.replace(path, old)
        os.replace(new, path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(new, path)
    sync(path.parent)


@contextmanager
def explained(what: str, folder: Path, step: int) -> Iterator[None]:
    """Turn whatever a failed write raises into one sentence; nothing half-written stays."""
    io_error = need("safetensors", extra="train").SafetensorError
    try:
        yield
    except (OSError, RuntimeError, io_error) as error:
        reason = _reason(error, folder)
        shutil.rmtree(folder / WRITING, ignore_errors=True)
        if reason is None:
            raise
        good = steps(folder)
        onward = f"goes on from step {good[-1]}" if good else "starts again"
        raise CheckpointError(
            f"{what} of step {step} could not be written to {folder} ({reason}); "
            f"once that is put right, the same command {onward}"
        ) from error


def _reason(error: Exception, folder: Path) -> str | None:
    """Why writing failed, if writing is what failed."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    text = str(error)
    for number in (errno.ENOSPC, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EDQUOT):
        if os.strerror(number) in text or f"os error {number}" in text:
            return os.strerror(number)
    if "PytorchStreamWriter" in text or "iostream error" in text or "unexpected pos" in text:
        full = shutil.disk_usage(folder).free < 2**20  # torch does not say which error it was
        return os.strerror(errno.ENOSPC) if full else "the file could not be written whole"
    return None
