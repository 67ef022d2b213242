"""Completion files: what each system wrote after the same prefixes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any


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
) -> Completions:
    """Read one JSONL file a system, as `scalegrad complete` writes them, and make sure they continue the same prefixes.

    Lines are matched by id, in whatever order; a file whose lines have no id is matched by line number. The first
    difference found is quoted in the `ValueError`.
    """
    prefixes: dict[str, str] = {}
    texts: dict[str, dict[str, str]] = {}
    first = ""
    for system, file in files.items():
        own, texts[system] = _read(Path(file), id_field, prefix_field, continuation_field)
        if not prefixes:
            prefixes, first = own, str(file)
        _check_same(prefixes, first, own, str(file))
    return Completions(prefixes, texts)


def _read(
    file: Path, id_field: str, prefix_field: str, continuation_field: str
) -> tuple[dict[str, str], dict[str, str]]:
    prefixes: dict[str, str] = {}
    texts: dict[str, str] = {}
    numbered: bool | None = None
    for line, record in read_records(file):
        if numbered is None:
            numbered = id_field not in record
        if numbered == (id_field in record):
            raise ValueError(f"{file}, line {line}: either every line or none must have a field {id_field!r}")
        key = str(line) if numbered else str(record[id_field])
        if key in prefixes:
            raise ValueError(f"{file}, line {line}: the id {key!r} was used before; each prefix may stand there once")
        prefixes[key] = record_text(file, line, record, prefix_field)
        texts[key] = record_text(file, line, record, continuation_field)
    if not prefixes:
        raise ValueError(f"{file} holds no completions")
    return prefixes, texts


def read_records(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a JSONL file with their line numbers; empty lines are passed over."""
    with file.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"{file}, line {number} is not JSON: {error}") from None
                if not isinstance(record, dict):
                    raise ValueError(f"{file}, line {number} must be a JSON object, not {type(record).__name__}")
                yield number, record
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not UTF-8 text: {error}") from None


def record_text(file: Path, line: int, record: dict[str, Any], field: str) -> str:
    """A field of a line that must hold a text."""
    value = record.get(field)
    if not isinstance(value, str):
        fields = ", ".join(map(repr, record))
        raise ValueError(f"{file}, line {line}: field {field!r} must be a text; the line has {fields or 'no fields'}")
    # JSON can spell half a surrogate pair; no encoding can store it.
    return value.encode("utf-8", "replace").decode("utf-8")


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
