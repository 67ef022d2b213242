"""The paper's other test texts, which users bring: the Penn Treebank and IMDB reviews.

Both come back as one text, lines ending in a newline, ready for `encode_corpus`. Neither gives the paper's human row
exactly: its Penn Treebank text is cased and has digits (the LDC's), unlike the lower-cased file in common use, and
its 500 reviews were drawn without a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from scalegrad.data.readers import read_texts

_Item = TypeVar("_Item")


def ptb(path: str | Path, split: str = "test") -> str:
    """The Penn Treebank text: `path` is a file with a sentence a line, or a folder that holds `ptb.<split>.txt`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "ptb.test.txt").write_text(" no it was n't black monday \\n but while \\n")
    >>> ptb(folder)
    " no it was n't black monday \\n but while \\n"
    """
    path = Path(path)
    if path.is_dir():
        path = path / f"ptb.{split}.txt"
    lines = list(read_texts(path, format="txt"))
    if next(line for line in lines if line.strip()).lstrip().startswith("("):
        raise ValueError(f"{path} holds parse trees; expected plain text, a sentence a line")
    return "".join(f"{line}\n" for line in lines)


def imdb(path: str | Path, reviews: int = 500, seed: int = 0, field: str | None = None) -> str:
    """`reviews` IMDB reviews drawn by `seed`, a line each: from a folder of .txt files, or a .jsonl or .csv file.

    A folder is searched to any depth, as the distributed one (`test/pos/0_10.txt`, …) needs; the draw does not depend
    on the order in which the file system lists it. `<br />` becomes a space. `field` as for `read_texts`.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "reviews.csv"
    >>> _ = path.write_text('review,sentiment\\n"Dull.<br /><br />Very.",negative\\nFine,positive\\n')
    >>> sorted(imdb(path, reviews=2, field="review").splitlines())
    ['Dull. Very.', 'Fine']
    """
    path = Path(path)
    if path.is_dir():
        drawn = [next(read_texts(file, separator="file")) for file in _draw(_files(path), reviews, seed, path)]
    else:
        drawn = _draw(list(read_texts(path, field)), reviews, seed, path)
    return "".join(f"{_one_line(text)}\n" for text in drawn)


def imdb_reviews(path: str | Path, field: str | None = None) -> Iterator[str]:
    """Every review that `imdb` would draw from, in one line each."""
    path = Path(path)
    files = _files(path) if path.is_dir() else []
    texts = (next(read_texts(file, separator="file")) for file in files) if files else read_texts(path, field)
    return map(_one_line, texts)


def _files(folder: Path) -> list[Path]:
    """Bag-of-words and URL lists of the distributed folder lie outside pos/, neg/ and unsup/."""
    files = sorted(file for file in folder.rglob("*_*.txt") if file.stem.replace("_", "").isdigit())
    if not files:
        raise ValueError(f"{folder} holds no reviews; expected files such as pos/0_9.txt")
    return files


def _one_line(review: str) -> str:
    return " ".join(review.replace("<br />", " ").split())


def _draw(population: list[_Item], count: int, seed: int, path: Path) -> list[_Item]:
    if not 1 <= count <= len(population):
        raise ValueError(f"reviews is {count}; {path} has {len(population)}, expected a number from 1 to that")
    return random.Random(seed).sample(population, count)
