"""The folder of a run.

config.json        what was asked: task, model, objective, data with its hash, settings, seed
environment.json   for every start (a resumed run has several): versions, hardware, git state, command, date
metrics.jsonl      the training log: a line each time training logs or validates
results.jsonl      every figure of the run, a row each (`runs.rows`)
evaluations.jsonl  a line for each part that was measured: settings, notes, seconds
samples/           texts
checkpoints/       what a resumed run goes on from
model/             the selected model and its tokenizer (adapter/: what LoRA added to it)
tensorboard/       curves
done.json          what came out; there only when the run is finished
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from scalegrad._places import same_place
from scalegrad.objectives import parse
from scalegrad.runs.atomic import append_lines, check_writable_folder, line, plain, write_json, write_lines
from scalegrad.runs.environment import environment
from scalegrad.runs.rows import FILE, KEY, Row, read_rows, write_rows

# Keys of a flat config under which a file or folder is named, and the names that stand there for something else.
Places: TypeAlias = Mapping[str, Collection[str]]

# What every run writes. done.json is removed first and environment.json, the mark of a run, last, so that a kill in
# between leaves a folder that is still a run.
_FIRST = (
    "done.json",
    "metrics.jsonl",
    "evaluations.jsonl",
    FILE,
    "checkpoints",
    "model",
    "adapter",
    "samples",
    "tensorboard",
)
_LAST = ("config.json", "environment.json")


class Run:
    """A run's folder. Of several processes only the first (RANK 0) writes; the others may call everything.

    >>> import tempfile
    >>> run = Run.create(Path(tempfile.mkdtemp()) / "run", {"objective": "sg=0.2", "seed": 0})
    >>> run.log({"step": 10, "nll": 3.5})
    >>> run.finish({"selected_step": 10})
    >>> again = Run.open(run.path)
    >>> again.finished, again.metrics(), again.load("done")
    (True, [{'step': 10, 'nll': 3.5}], {'selected_step': 10})
    >>> Run.create(run.path, {"objective": "sg=0.5", "seed": 0})
    Traceback (most recent call last):
    ValueError: ...run holds another run: its objective is "sg=0.2", not "sg=0.5"; ...
    """

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self.writes = os.environ.get("RANK", "0") == "0"

    @classmethod
    def create(
        cls, path: str | Path, config: Mapping[str, Any], *, overwrite: bool = False, places: Places | None = None
    ) -> Run:
        """Create the run folder, or resume it if it already holds a run with this config.

        A folder that holds a run of another config raises ValueError naming the first key that differs, one that
        holds anything else too; `overwrite` starts anew where a run is (and never deletes what is not one). Under a key
        of `places` another spelling of the same path is no other config; config.json keeps the first.
        """
        run = cls(Path(path), plain(config))
        if not run.writes:
            return run
        check_writable_folder(run.path, "the run's folder")
        starts = _starts(run.path)
        if starts is None and any(not item.name.startswith(".") for item in run.path.iterdir()):
            raise ValueError(
                f"{run.path} is not empty and holds no run (no environment.json of one): name another folder"
            )
        if overwrite:
            run._clear()
            starts = None
        elif (run.path / "config.json").exists():
            cls.open(run.path).check_same(run.config, places or {})
        if not run.finished:
            # The mark of a run before all else: a kill after any of these lines leaves a folder to go on in.
            run.save("environment", {"starts": [*(starts or []), environment()]})
            if not (run.path / "config.json").exists():
                run.save("config", run.config)
        for folder in (run.checkpoints, run.path / "samples"):
            check_writable_folder(folder, "the run's folder")
        return run

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run that is in `path`."""
        path = Path(path)
        if not (path / "config.json").is_file():
            raise FileNotFoundError(f"{path} holds no run: there is no config.json in it")
        return cls(path, _read(path / "config.json"))

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def model_path(self) -> Path:
        """Where the selected model is once the run is finished."""
        return self.path / "model"

    @property
    def finished(self) -> bool:
        return (self.path / "done.json").exists()

    def log(self, record: Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl."""
        if self.writes:
            with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
                file.write(line(record))

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; one that a kill tore is left out."""
        return _whole_lines(self.path / "metrics.jsonl")

    def add(self, rows: Iterable[Row], settings: Mapping[str, Any] | None = None, **about: Any) -> None:
        """Append rows to results.jsonl. `settings`: what was measured how, for `evaluation`; `about`: notes on it."""
        if not self.writes:
            return
        write_rows(self.path / FILE, [replace(row, run=row.run or self.path.name) for row in rows])
        if settings is not None:  # last: once it is there, the rows are
            append_lines(self.path / "evaluations.jsonl", [{"settings": settings, **about}])

    def rows(self) -> list[Row]:
        """The rows of results.jsonl; of equal ones the last."""
        return read_rows(self.path / FILE)

    def evaluations(self) -> list[dict[str, Any]]:
        """What was measured, in order: its settings and notes."""
        return _whole_lines(self.path / "evaluations.jsonl")

    def evaluation(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The measurement under exactly these settings, if its rows are still those of results.jsonl; else None.

        Rows are replaced by a later measurement whose settings agree in all that are fields of `Row` too.
        """
        entry = self.measured(settings)
        return entry if entry is not None and entry["settings"] == plain(settings) else None

    def measured(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The measurement, under whatever other settings, whose rows one under `settings` would replace."""
        return next((e for e in self.evaluations_now() if _measured(e["settings"]) == _measured(plain(settings))), None)

    def evaluations_now(self) -> list[dict[str, Any]]:
        """The measurements whose rows were not replaced by later ones."""
        return list({_measured(entry["settings"]): entry for entry in self.evaluations()}.values())

    def about(self) -> dict[str, Any]:
        """The fields of its rows that the run itself gives: task, model, objective, strength, seed, selected step."""
        objective = parse(str(self.config["objective"])) if self.config.get("objective") else None
        step = self.load("done").get("selected_step") if self.finished else None
        return {
            "task": self.config.get("task"),
            "model": self.config.get("model"),
            "objective": objective.name if objective else None,
            "strength": objective.amount if objective else None,
            "seed": self.config.get("seed", self.config.get("settings", {}).get("seed")),
            "step": step,
        }

    def rewind(self, step: int) -> None:
        """Forget what was logged after `step`: the run goes on from there."""
        if self.writes and (self.path / "metrics.jsonl").exists():
            write_lines(self.path / "metrics.jsonl", [entry for entry in self.metrics() if entry["step"] <= step])

    def save(self, name: str, value: Any) -> None:
        """Write `value` as `name`.json, or record by record where the name ends in .jsonl ("samples/greedy.jsonl")."""
        if not self.writes:
            return
        path = self._file(name)
        if path.relative_to(self.path).parts[0] not in (*_FIRST, *_LAST):  # what --overwrite removes
            raise ValueError(f"{path.name} is no file of a run; expected one of {', '.join((*_FIRST, *_LAST))}")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl":
            write_lines(path, value)
        else:
            write_json(path, value)

    def load(self, name: str) -> Any:
        """What `save` wrote under `name`."""
        path = self._file(name)
        if not path.is_file():
            raise FileNotFoundError(f"{self.path} has no {path.relative_to(self.path)}")
        return _whole_lines(path) if path.suffix == ".jsonl" else _read(path)

    def finish(self, results: Mapping[str, Any]) -> None:
        """Write what came out: from now on the run is finished."""
        self.save("done", results)

    def _file(self, name: str) -> Path:
        return self.path / (name if name.endswith((".json", ".jsonl")) else f"{name}.json")

    def check_same(self, config: Mapping[str, Any], places: Places, keys: Iterable[str] | None = None) -> None:
        """Refuse another config than the run's: the first key that differs, of `keys` or of all."""
        before, now = flat_config(self.config), flat_config(plain(config))
        for key in keys or dict.fromkeys((*before, *now)):
            if not same_setting(key, before.get(key), now.get(key), places):
                old, new = (json.dumps(values.get(key), ensure_ascii=False) for values in (before, now))
                raise ValueError(
                    f"{self.path} holds another run: its {key} is {old}, not {new}; name another folder, or overwrite "
                    "it (--overwrite)"
                )

    def _clear(self) -> None:
        """Remove everything a run wrote, and what a kill left half-written under a hidden name."""
        names = (*_FIRST, *_LAST)
        for name in names:
            half_written = re.compile(rf"\.(old-)?{re.escape(name)}(\.\d+)?")
            for item in (self.path / name, *(i for i in self.path.iterdir() if half_written.fullmatch(i.name))):
                if item.is_dir() and not item.is_symlink():
                    shutil.rmtree(item, ignore_errors=True)
                else:
                    item.unlink(missing_ok=True)


def samples_name(corpus: str | None, split: str | None, strategy: object) -> str:
    """The file in samples/ of a strategy's texts on a corpus (strategy "human": how the corpus itself goes on).

    >>> samples_name("wikitext-103", "test", "greedy,gamma=0.2")
    'wikitext-103-test.greedy,gamma=0.2.jsonl'
    """
    text = ".".join(part for part in ("-".join(part for part in (corpus, split) if part), str(strategy)) if part)
    return "".join(sign if sign.isalnum() or sign in "-._,=+" else "-" for sign in f"{text}.jsonl")


def _measured(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the rows of a measurement are figures of, as far as its settings say it."""
    return tuple(settings.get(name) for name in KEY)


def _starts(path: Path) -> list[Any] | None:
    """What environment.json, the mark of a run, says of its starts; None where there is no such mark.

    config.json is no mark: every saved model has one.
    """
    if not (path / "environment.json").is_file():
        return None
    try:
        found = _read(path / "environment.json")
    except ValueError:
        return None
    starts = found.get("starts") if isinstance(found, dict) else None
    return starts if isinstance(starts, list) else None


def flat_config(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested config with one key for each value.

    >>> flat_config({"settings": {"seed": 1}})
    {'settings.seed': 1}
    """
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat_config(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def same_setting(key: str, one: Any, other: Any, places: Places) -> bool:
    """Whether two configs say the same under `key` of `flat_config`.

    >>> same_setting("model", "/", "/.", {"model": ["base"]}), same_setting("objective", "/", "/.", {"model": []})
    (True, False)
    """
    return same_place(one, other, places[key]) if key in places else bool(one == other)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is broken: {error}") from None


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    *lines, _torn = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [json.loads(text) for text in lines if text]
