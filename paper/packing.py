"""The results of a reproduction without its weights, small enough to carry: `python -m …packing FOLDER FILE.tar.xz`.

Kept: every table, plot and record, and the texts of the first seed's greedy decodings of the paper's three objectives
on WikiText-103, and every objective's of the paper's printed beginnings. News, reviews and the Penn Treebank stay out.
Unpacked elsewhere, `python -m paper` shows the same and trains nothing anew.
"""

from __future__ import annotations

import argparse
import tarfile
from pathlib import Path

from paper.examples import SAMPLES
from paper.open_ended_scale import MAIN, UNPACKED
from paper.outcome import BASE_SMALL
from scalegrad.runs import replacing, run_name

# Weights; a study, which has secrets; and news, which may not be passed on.
_LEFT_OUT = (
    "model", "adapter", "checkpoints", "tensorboard", "pretraining", "study", "news-data", "news-model", "small-bert",
    UNPACKED,
)  # fmt: skip
_TEXTS = "wikitext-103"  # of which continuations are kept, with the beginnings they continue
_RECORDS = (".json", ".jsonl", ".md", ".html", ".png", ".svg", ".txt")


def pack(folder: str | Path, target: str | Path) -> list[Path]:
    """Pack what can be shown of `folder` into the .tar.xz file `target`; the files in it, relative to `folder`."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    kept = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_kept(path.relative_to(folder))]
    with replacing(target) as unfinished, tarfile.open(unfinished, "w:xz") as archive:
        for path in kept:
            archive.add(path, path.relative_to(folder))
    return [path.relative_to(folder) for path in kept]


def _is_kept(path: Path) -> bool:
    """No weights, no checkpoints, of the texts only what people read; nothing half-written.

    >>> [_is_kept(Path(name)) for name in ("wikitext/results.jsonl", "runs/base/mle-seed-0/model/config.json")]
    [True, False]
    >>> name = "runs/base/{}/samples/wikitext-103-test.greedy.jsonl"
    >>> [_is_kept(Path(name.format(run))) for run in ("sg-0.2-seed-0", "sg-0.2-seed-1", "sg-0.5-seed-0")]
    [True, False, False]
    >>> [_is_kept(Path("runs") / name) for name in ("base/mle-seed-0/samples/imdb.human.jsonl", "news-data/test.jsonl")]
    [False, False]
    """
    if any(part in _LEFT_OUT or part.startswith(".") for part in path.parts) or path.suffix not in _RECORDS:
        return False
    if path.parts[0] == BASE_SMALL:
        return path.name == "recipe.json"
    if "samples" not in path.parts:
        return True
    if path.name == Path(SAMPLES).name:
        return True
    run = path.parts[path.parts.index("samples") - 1]
    of_main = run in [run_name(objective, 0) for objective in MAIN]
    return of_main and path.name.startswith(_TEXTS) and path.name.endswith((".greedy.jsonl", ".human.jsonl"))


def main(arguments: list[str] | None = None) -> None:
    """Pack a folder and say how large it became."""
    parser = argparse.ArgumentParser(description="Pack a reproduction's results without weights.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("target", type=Path, help="a .tar.xz file")
    chosen = parser.parse_args(arguments)
    files = pack(chosen.folder, chosen.target)
    print(f"{len(files):,} files, {chosen.target.stat().st_size / 2**20:.1f} MiB: {chosen.target}")


if __name__ == "__main__":
    main()
