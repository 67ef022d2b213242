"""From files of texts to the report: read, cut, measure, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from scalegrad.data import read_texts
from scalegrad.report.measure.human import first_words
from scalegrad.report.measure.measurement import Measurement, measure
from scalegrad.report.measure.side_by_side import MeasureReport, build_report

# Told the file (as it was given) and the bytes read of it so far.
Progress = Callable[[str, int], None]


def measure_files(
    sources: Sequence[str],
    human: str | None = None,
    *,
    field: str | None = None,
    format: str | None = None,
    separator: str = "line",
    limit: int | None = None,
    worst: int = 3,
    progress: Progress | None = None,
) -> MeasureReport:
    """Measure files side by side, with human text of the same length: the embedded one, or the texts of `human`.

    Files stream: memory does not grow with them. `field`, `format` and `separator` are those of `data.read_texts`;
    `limit` reads only the first texts of each; `worst` texts of each are quoted. Texts of `human` are cut to the
    median length of the systems.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = path.write_text("the cat sat on the mat\\n" * 30)
    >>> [row.name for row in measure_files([str(path)]).rows]
    ['texts.txt', 'human (6 words)']
    """
    if not sources:
        raise ValueError("no file to measure; expected at least one, or - for standard input")
    for source in {*sources, human} - {None}:
        if [*sources, human].count(source) > 1:
            raise ValueError(f"{source} is named twice; expected different files")
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; expected at least 1 text")
    if worst < 0:
        raise ValueError(f"worst is {worst}; expected 0 or more texts to quote")

    def texts(source: str) -> Iterator[str]:
        told = (lambda read: progress(source, read)) if progress else None
        return islice(read_texts(source, field, format=format, separator=separator, progress=told), limit)

    systems = [measure(texts(source), name, worst) for source, name in zip(sources, _names(sources), strict=True)]
    return build_report(systems, [] if human is None else [_human(texts(human), human, systems)])


def _human(texts: Iterator[str], source: str, systems: Sequence[Measurement]) -> Measurement:
    length = max(system.median_words for system in systems)
    return measure(first_words(texts, length), f"human ({_name(source)})", worst=0)


def _names(sources: Sequence[str]) -> list[str]:
    """The files' names; their paths where two share a name."""
    names = [_name(source) for source in sources]
    return names if len(set(names)) == len(names) else list(sources)


def _name(source: str) -> str:
    return "standard input" if source == "-" else Path(source).name
