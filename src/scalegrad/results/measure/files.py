"""From files of texts to the report: read, cut, measure, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from scalegrad.data import Problems, read_texts
from scalegrad.data.readers import name_of
from scalegrad.results.measure.beginnings import paired_beginnings, word_counts
from scalegrad.results.measure.measurement import Measurement, measure
from scalegrad.results.measure.side_by_side import MeasureReport, build_report
from scalegrad.runs.progress import Progress

Texts = Callable[[str], Iterable[str]]  # the texts of a source (as it was named)


def measure_files(
    sources: Sequence[str],
    human: str | None = None,
    *,
    field: str | None = None,
    format: str | None = None,
    separator: str = "line",
    limit: int | None = None,
    words: int | None = None,
    worst: int = 3,
    problems: Problems | None = None,
    progress: Progress | None = None,
) -> MeasureReport:
    """Measure files side by side, with human text of the same length: the embedded one, or the texts of `human`.

    A source is a file, a folder or "-", and streams: memory does not grow with it. `field`, `format`, `separator` and
    `problems` are those of `data.read_texts`; `limit` reads only the first texts of each source; `worst` texts of each
    are quoted. Texts of `human` are cut to the median length of the systems (the longest, if they differ).

    With `words` each text is cut after so many words, and texts with fewer are left out; files with equally many texts
    all leave out a text that is too short in one of them. Files are then read twice, first to count words; what can be
    read only once (standard input, a pipe) is held in memory. `progress` counts on from one reading to the next.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = path.write_text("the cat sat on the mat\\n" * 30)
    >>> [row.name for row in measure_files([str(path)]).rows]
    ['texts.txt', 'human (6 words)']
    >>> [row.name for row in measure_files([str(path)], words=4).rows]
    ['texts.txt', 'human (4 words)']
    """
    if not sources:
        raise ValueError("no file to measure; expected at least one, or - for standard input")
    for source in {*sources, human} - {None}:
        if [*sources, human].count(source) > 1:
            raise ValueError(f"{source} is named twice; expected different files")
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; expected at least 1 text")
    if words is not None and words < 1:
        raise ValueError(f"words is {words}; expected at least 1 word of each text")
    if worst < 0:
        raise ValueError(f"worst is {worst}; expected 0 or more texts to quote")

    problems = Problems() if problems is None else problems
    readings = 1 if words is None else 2
    bytes_read: dict[str, int] = {}

    def texts(source: str) -> Iterator[str]:
        before = bytes_read.get(source, 0)  # by an earlier reading, which counted the bad lines

        def report(what: str, done: int, total: int) -> None:
            bytes_read[source] = before + done
            if progress:
                progress(what, before + done, readings * total)

        bad = Problems(problems.skip) if before else problems
        options: dict[str, Any] = {"format": format, "separator": separator, "problems": bad, "progress": report}
        return islice(read_texts(source, field, **options), limit)

    files = dict(zip(_names(sources), sources, strict=True))
    own_human = {} if human is None else {f"human ({_name(human)})": human}
    if words is not None:
        again = _repeatable(texts)
        return build_report(
            _measure_beginnings(files, again, words, worst), _measure_beginnings(own_human, again, words, worst=0)
        )
    systems = [measure(texts(source), name, worst) for name, source in files.items()]
    length = max(system.median_words for system in systems)
    return build_report(
        systems, [measure(texts(source), name, worst=0, at_most=length) for name, source in own_human.items()]
    )


def _measure_beginnings(files: dict[str, str], texts: Texts, words: int, worst: int) -> list[Measurement]:
    """Measure the first words of the texts of files {name: source}, read once to count words and once to measure."""
    beginnings = paired_beginnings({name: word_counts(texts(source)) for name, source in files.items()}, words)
    return [
        measure(texts(source), name, worst, cut) for (name, source), cut in zip(files.items(), beginnings, strict=True)
    ]


def _repeatable(texts: Texts) -> Texts:
    """Read a file anew each time; hold what can be read only once (standard input, a pipe)."""
    held = cache(lambda source: list(texts(source)))
    return lambda source: texts(source) if Path(source).is_file() or Path(source).is_dir() else held(source)


def _names(sources: Sequence[str]) -> list[str]:
    """The files' names; their paths where two share a name."""
    names = [_name(source) for source in sources]
    return names if len(set(names)) == len(names) else list(sources)


def _name(source: str) -> str:
    return name_of(Path(source).name or source)
