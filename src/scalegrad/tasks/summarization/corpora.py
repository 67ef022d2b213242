"""The data of a summarisation run: the embedded SciTLDR, a folder of files, or a data set of the hub."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scalegrad.data.embedded import scitldr
from scalegrad.data.pairs import Pair, hub_pairs, read_pairs, split_files
from scalegrad.data.records import Problems
from scalegrad.runs.progress import Progress

DEFAULT = "scitldr"

# Pairs in the paper's training, validation and test sets.
PAPER_SIZES: dict[str, dict[str, int]] = {
    "cnn_dailymail": {"train": 287_227, "validation": 13_368, "test": 11_490},
    "nyt50": {"train": 96_834, "validation": 4_000, "test": 3_452},
}


def load_split(
    data: str | Path,
    split: str,
    limit: int | None = None,
    *,
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> list[Pair]:
    """The pairs of `split` ("train", "validation", "test"), the first `limit` of them.

    `data`: "scitldr" (embedded); a folder with files or sub-folders named after the splits, such as train.jsonl,
    validation-1000.csv.xz or test/ full of .story files; a single file, which then is every split that is asked for;
    "cnn_dailymail" or another name of the hub. `problems` says what of records that cannot be used (`read_pairs`).

    >>> [pair.id for pair in load_split("scitldr", "test", limit=2)]
    ['SJ1Xmf-Rb', 'S1xzyhR9Y7']
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    pairs = _all(str(data), split, problems, progress)
    if str(data) in PAPER_SIZES:
        check_sizes(str(data), {split: len(pairs)})
    return pairs[:limit]


def check_data(data: str) -> None:
    """Refuse a file or folder that is not there, before anything is read."""
    path = Path(data).expanduser()
    if (data.startswith((".", "/", "~")) or path.suffix) and not path.exists():
        raise FileNotFoundError(f"data: there is no file or folder {data}")


def check_sizes(corpus: str, sizes: Mapping[str, int]) -> None:
    """Warn where a corpus the paper used has another size here.

    >>> check_sizes("nyt50", {"test": 3452})
    """
    if corpus not in PAPER_SIZES:
        raise ValueError(f"corpus must be one of {', '.join(PAPER_SIZES)}, not {corpus!r}")
    other = {name: size for name, size in sizes.items() if size != PAPER_SIZES[corpus][name]}
    if other:
        sizes_here = "; ".join(
            f"{name} {size:,}, the paper's {PAPER_SIZES[corpus][name]:,}" for name, size in other.items()
        )
        warnings.warn(f"{corpus}: not the paper's sizes ({sizes_here}), so figures compare only roughly", stacklevel=3)


def checksum(pairs: Sequence[Pair]) -> dict[str, Any]:
    """How many pairs, and a checksum of them, for a run's config and settings."""
    digest = hashlib.blake2b(digest_size=8)
    for pair in pairs:
        digest.update("\0".join((*pair.source, "", *pair.references, "\n")).encode())
    return {"pairs": len(pairs), "checksum": digest.hexdigest()}


def _all(data: str, split: str, problems: Problems | None, progress: Progress | None) -> list[Pair]:
    if data == DEFAULT:
        return scitldr(split)
    path = Path(data).expanduser()
    if path.is_file():
        return read_pairs(path, problems=problems, progress=progress)
    if path.is_dir():
        files = split_files(path, split)
        if not files:
            raise ValueError(f"data: {path} has no file or folder for {split}, such as {split}.jsonl or {split}.csv.xz")
        return [pair for file in files for pair in read_pairs(file, problems=problems, progress=progress)]
    check_data(data)
    return hub_pairs(data, split, problems)
