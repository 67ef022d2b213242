"""Completion files: what each system wrote after the same prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from scalegrad.data.readers import STANDARD_INPUT, kind_of, name_of, nothing_in, read_records, text_of
from scalegrad.data.records import Problems, Record


@dataclass(frozen=True)
class Completions:
    """Prefixes and every system's continuation of them, by the id of the prefix.

    `texts[system][id]` continues `prefixes[id]`.
    """

    prefixes: dict[str, str]
    texts: dict[str, dict[str, str]]


def read_completions(
    files: Mapping[str, str | Path],
    id_field: str = "id",
    prefix_field: str = "prefix",
    continuation_field: str = "continuation",
    problems: Problems | None = None,
) -> Completions:
    """Read each system's file, as `scalegrad complete` writes them, and make sure they continue the same prefixes.

    A file is JSONL, or what else `data.read_texts` takes (.csv, .gz, .xz, a folder, "-"). Records are matched by id, in
    whatever order; those of a file without ids by line number. The first difference is quoted in the `ValueError`. With
    `problems` that skip, bad lines are left out, and so are prefixes that not every system continues.
    """
    problems = Problems() if problems is None else problems
    texts: dict[str, dict[str, str]] = {}
    prefixes: dict[str, dict[str, str]] = {}
    for system, file in files.items():
        prefixes[system], texts[system] = _read(file, id_field, prefix_field, continuation_field, problems)
    first, *others = files
    if problems.skip:
        _keep_common(files, prefixes, texts, problems)
    for system in others:
        _check_same(prefixes[first], str(files[first]), prefixes[system], str(files[system]))
    return Completions(prefixes[first], texts)


def _read(
    file: str | Path, id_field: str, prefix_field: str, continuation_field: str, problems: Problems
) -> tuple[dict[str, str], dict[str, str]]:
    prefixes: dict[str, str] = {}
    texts: dict[str, str] = {}
    numbered: bool | None = None
    for record in read_objects(file, problems):
        fields = texts_in(record, (prefix_field, continuation_field), problems)
        if fields is None:
            continue
        has_id = isinstance(record.content, dict) and id_field in record.content
        numbered = not has_id if numbered is None else numbered
        if numbered == has_id:
            raise ValueError(f"{record.place}: either every line or none must have a field {id_field!r}")
        key = str(record.line) if numbered else str(dict(record.content)[id_field])  # type: ignore[arg-type]
        if key in prefixes:
            problems.add("its id was used before, and each prefix may stand there once", record.place, repr(key))
            continue
        prefixes[key], texts[key] = fields
    if not prefixes:
        raise ValueError(nothing_in(name_of(file), problems, "completion"))
    return prefixes, texts


def _keep_common(
    files: Mapping[str, str | Path],
    prefixes: dict[str, dict[str, str]],
    texts: dict[str, dict[str, str]],
    problems: Problems,
) -> None:
    """Leave out the prefixes that not every system continues."""
    common = set.intersection(*(set(own) for own in prefixes.values()))
    for system, own in prefixes.items():
        for key in [key for key in own if key not in common]:
            problems.add("a prefix that not every system continues", f"{files[system]}, prefix {key!r}")
            del own[key], texts[system][key]
    if not common:
        raise ValueError(f"there is no prefix that every system continues ({problems})")


def read_objects(file: str | Path, problems: Problems) -> Iterator[Record]:
    """The records of a file with fields; a name that says nothing of the format is taken for JSONL."""
    folder = Path(file).is_dir()
    kind = "jsonl" if str(file) == STANDARD_INPUT else None if folder else kind_of(file) or "jsonl"
    return read_records(file, format=kind, problems=problems)


def texts_in(record: Record, fields: Sequence[str], problems: Problems) -> tuple[str, ...] | None:
    """The fields of a record, each of which must hold a text; None if one does not and the record is skipped."""
    if isinstance(record.content, str):
        problems.add("a text, not an object", record.place)
        return None
    values = [text_of(record, field, problems) for field in fields]
    return None if None in values else tuple(map(str, values))


def _check_same(prefixes: dict[str, str], first: str, own: dict[str, str], file: str) -> None:
    for key, prefix in prefixes.items():
        if key not in own:
            raise ValueError(f"{file} has no completion of prefix {key!r}, which {first} has: {_quoted(prefix)}")
        if own[key] != prefix:
            at = next(i for i, (one, other) in enumerate(zip_longest(prefix, own[key])) if one != other)
            raise ValueError(
                f"prefix {key!r} is not the same in {first} and {file}: from character {at + 1} on, "
                f"{_quoted(prefix[at:])} against {_quoted(own[key][at:])}"
            )
    for key, prefix in own.items():
        if key not in prefixes:
            raise ValueError(f"{first} has no completion of prefix {key!r}, which {file} has: {_quoted(prefix)}")


def _quoted(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
