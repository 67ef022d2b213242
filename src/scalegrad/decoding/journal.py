"""A JSONL file that is written line by line, may be killed at any moment, and goes on where it stopped.

`OUT` appears whole, when all is done. Until then the lines gather in `OUT.partial`, in the order they are made.
`OUT.meta.json` records the settings; a run with other settings is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from scalegrad._places import same_place
from scalegrad.runs import replacing, take_lock, write_json
from scalegrad.runs.atomic import line


class Journal:
    """The file of one run; `order` is the order in which its records are made, as a permutation of 0 … N - 1.

    Each record is a mapping whose `id` is its place in the finished file.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any], order: Sequence[int], overwrite: bool = False) -> None:
        self.out = out
        self.partial = out.with_name(out.name + ".partial")
        self.meta = out.with_name(out.name + ".meta.json")
        self.settings = dict(settings)
        self.order = list(order)
        self.plan: list[tuple[int, int]] = []  # (from which place of the order, how many at a time)
        self.done = 0  # how many of the order are written
        if out.is_dir():
            raise ValueError(f"out: {out} is a folder; expected the name of a file to write")
        self._stream: BinaryIO | None = None
        if overwrite:
            self._clear()
        self._resume()

    @property
    def finished(self) -> bool:
        return self._stream is None

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add the next records of the order; once this returns they survive a kill."""
        lines = [line(record) for record in records]
        assert self._stream is not None, "the file is finished"
        self._stream.write("".join(lines).encode(errors="replace"))
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.done += len(lines)

    def replan(self, place: int, size: int) -> None:
        """From `place` of the order on, work in batches of `size`; recorded, so that a resumed run does the same."""
        self.plan = [(start, n) for start, n in self.plan if start < place] + [(place, size)]
        write_json(self.meta, {"settings": self.settings, "plan": self.plan})

    def next_batch(self) -> range:
        """The planned batch that holds the next record to be made, as places of the order; some may be made already."""
        start, size = max(step for step in self.plan if step[0] <= self.done)
        begin = start + (self.done - start) // size * size
        return range(begin, min(begin + size, len(self.order)))

    def finish(self) -> None:
        """Put the lines into their final order and the file into its place, all at once."""
        assert self._stream is not None, "the file is finished"
        starts = [0]
        self._stream.seek(0)
        for written in self._stream:
            starts.append(starts[-1] + len(written))
        where = {record: (starts[place], starts[place + 1]) for place, record in enumerate(self.order)}
        with replacing(self.out) as unfinished, unfinished.open("wb") as target:
            for record in range(len(self.order)):
                start, end = where[record]
                self._stream.seek(start)
                target.write(self._stream.read(end - start))
        self.close()
        self.partial.unlink()

    def close(self) -> None:
        """Leave what there is for a later run; a run that made nothing leaves nothing."""
        if self._stream is None:
            return
        if not self.done:
            self.partial.unlink(missing_ok=True)
            self.meta.unlink(missing_ok=True)
        self._stream.close()
        self._stream = None

    def _clear(self) -> None:
        """Start anew, unless another run is at it."""
        self._open()
        self.close()
        for path in (self.out, self.partial, self.meta):
            path.unlink(missing_ok=True)

    def _open(self) -> BinaryIO:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        stream = self.partial.open("r+b" if self.partial.exists() else "w+b")
        if not take_lock(stream.fileno()):
            stream.close()
            raise ValueError(f"out: another run is writing {self.out} at this moment")
        self._stream = stream
        return stream

    def _resume(self) -> None:
        """Take up what an earlier run with the same settings left."""
        if self.meta.exists():
            self._check_settings()
        elif self.out.exists() or (self.partial.exists() and self.partial.stat().st_size):
            raise ValueError(
                f"out: {self.out} exists, without {self.meta.name} to say how it was made; "
                "choose another file, or --overwrite starts anew"
            )
        if self.out.exists():
            self.done = len(self.order)
            self.partial.unlink(missing_ok=True)
            return
        stream, good = self._open(), 0
        for written in stream:
            if self.done == len(self.order) or not _is_record(written, self.order[self.done]):
                break
            good += len(written)
            self.done += 1
        stream.truncate(good)  # a line torn by the kill goes
        stream.seek(good)

    def _check_settings(self) -> None:
        try:
            meta = json.loads(self.meta.read_text())
            before, self.plan = meta["settings"], [(int(a), int(b)) for a, b in meta["plan"]]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"out: {self.meta} is damaged; --overwrite starts anew") from None
        for key in sorted({*before, *self.settings}, key=str):
            old, new = before.get(key), self.settings.get(key)
            if not (old == new or (key == "model" and same_place(old, new))):  # its weights are compared, too
                raise ValueError(
                    f"out: {self.out} was begun with {key} {json.dumps(old)}, and this run has {json.dumps(new)}; "
                    "choose another file, or --overwrite starts anew"
                )
        self.settings = before  # as they were first written


def _is_record(written: bytes, number: int) -> bool:
    if not written.endswith(b"\n"):
        return False
    try:
        record = json.loads(written)
    except ValueError:
        return False
    return isinstance(record, dict) and record.get("id") == number
