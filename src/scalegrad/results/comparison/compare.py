"""From a data frame of rows to a comparison: one system for each setting and decoding, seeds merged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scalegrad import objectives
from scalegrad.results.comparison.systems import HUMAN, Comparison, Sample, System
from scalegrad.results.frame import frame, over_seeds, to_rows
from scalegrad.runs import Row, Run, samples_name

if TYPE_CHECKING:
    from pandas import DataFrame

PAPER = "paper"  # the run of figures that the paper prints
_ORDER = ("mle", "ul", "sg")
_VALIDATION = "validation_ppl"
_ACROSS_TOKENIZERS = ("bits_per_byte",)
_TOKEN_SETTINGS = ("checksum", "chunks", "tokenizer")


@dataclass(frozen=True)
class _Setting:
    """Runs that differ by their seed alone, and their rows."""

    rows: list[Row]
    runs: list[Run]
    objective: str
    strength: float | str | None
    model: str | None
    suffix: str = ""

    @property
    def shown(self) -> tuple[Any, ...]:
        """What its label shows."""
        return self.objective, self.strength, None if self.objective else self.model


def compare(
    data: DataFrame,
    corpus: str | None = None,
    split: str | None = None,
    *,
    window: int | None = None,
    new_tokens: int | None = None,
    training: bool = False,
    runs: Sequence[Run] = (),
) -> Comparison:
    """The systems of a data frame side by side, on the corpus that most of its runs were scored on, or on `corpus`.

    A system is one (model, objective, strength, decoding, penalty). Figures of next tokens belong to the model's first
    decoding without a penalty, or to that decoding under their own penalty; figures of texts to their own decoding.
    Where there are several windows or lengths, the commonest is shown, or `window` and `new_tokens`. `training` shows
    the figures of the training too, which have no corpus; a run without others shows its validation anyway. `runs` are
    the folders that the rows came from: with them the systems have their logs, texts and settings, runs of different
    settings stay apart, and runs without rows are there too.

    >>> about = {"objective": "mle", "corpus": "wikitext-103", "split": "test"}
    >>> rows = [Row("ppl", 13.2, **about), Row("ppl", 14.9, penalty="gamma=0.2", **about)]
    >>> rows += [Row("rep_1", 0.66, decoding="greedy", **about)]
    >>> rows += [Row("rep_1", 0.45, decoding="greedy", penalty="gamma=0.2", **about)]
    >>> [(system.label, system.figures) for system in compare(frame(rows)).systems]
    [('MLE', {'ppl': 13.2, 'rep_1': 0.66}), ('MLE, decoded with γ=0.2', {'ppl': 14.9, 'rep_1': 0.45})]
    """
    corpus, split = _choose(data, corpus, split)
    here = data[
        (data["corpus"].isna() | (data["corpus"] == corpus)) & (data["split"].isna() | (data["split"] == split))
    ]
    if not here.empty:
        here = _one_size(_one_size(here, "window", window), "new_tokens", new_tokens)
    settings = _settings(here, runs)
    texts = _reader(corpus, split)
    systems = [system for setting in settings for system in _systems(setting, texts, training)]
    title = " ".join(part for part in (corpus, split) if part)
    notes = _notes(runs, corpus, split)
    scored = set(here["run"][here["corpus"].notna()])
    if missing := [str(run.path) for run in runs if str(run.path) not in scored]:
        notes.append(f"Not scored on {title or 'any corpus'} yet (scalegrad evaluate FOLDER): {', '.join(missing)}.")
    apart, reasons = _apart(settings, corpus, split)
    systems = [*sorted(systems, key=place), *_human(here, runs, texts), *_printed(here)]
    return Comparison(systems, title, [*notes, *reasons], apart=apart, rows=_means(settings, _human_rows(here)))


def place(system: System) -> tuple[bool, int, float]:
    """Trained before decoded, MLE before UL before SG, each from weak to strong; others stay where they are."""
    order = _ORDER.index(system.objective) if system.objective in _ORDER else len(_ORDER)
    level = system.level or 0.0
    rises = system.objective == "ul" and system.kind == "trained"
    return system.kind == "decoded", order, level if rises else -level


def _choose(data: DataFrame, corpus: str | None, split: str | None) -> tuple[str | None, str | None]:
    """The corpus and split to show."""
    scored = data[data["corpus"].notna()].drop_duplicates(["run", "objective", "strength", "seed", "corpus", "split"])
    pairs = Counter(zip(scored["corpus"], scored["split"], strict=True))
    fits = [pair for pair, _ in pairs.most_common() if corpus in (None, pair[0]) and split in (None, pair[1])]
    if fits:
        return fits[0]
    if corpus is None and split is None:
        return None, None
    known = sorted(f"{name}:{part}" if part else name for name, part in pairs)
    wanted = ":".join(part for part in (corpus, split) if part)
    raise ValueError(f"corpus: no run was scored on {wanted!r}; they were on {', '.join(known) or 'none'}")


def _one_size(data: DataFrame, column: str, wanted: int | None) -> DataFrame:
    """Without rows of other windows or lengths than the wanted, or the commonest that a setting has."""
    sizes = data[column]
    if wanted is not None:
        return data[sizes.isna() | (sizes == wanted)]
    order = list(sizes.dropna().value_counts().index)
    owners = list(zip(data["run"], data["model"], data["objective"], data["strength"], strict=True))
    chosen: dict[Any, int] = {}
    for size in reversed(order):
        chosen |= {owner: size for owner, own in zip(owners, sizes, strict=True) if own == size}
    return data[[size is None or size == chosen[owner] for owner, size in zip(owners, sizes, strict=True)]]


def _settings(data: DataFrame, runs: Sequence[Run]) -> list[_Setting]:
    """Rows by the setting that they are of: that of their run, or what they say themselves."""
    keys = {str(run.path): _without_seed(run.config) for run in runs}
    members: dict[Any, list[Run]] = {key: [] for key in keys.values()}
    for run in runs:
        members[keys[str(run.path)]].append(run)
    own: dict[Any, list[Row]] = {key: [] for key in members}
    for row in to_rows(data):
        if row.objective != HUMAN and row.run != PAPER:
            key = keys.get(row.run or "", (row.model, row.objective, row.strength))
            own.setdefault(key, []).append(row)
    return _told_apart([_setting(own[key], members.get(key, [])) for key in own])


def _told_apart(settings: Sequence[_Setting]) -> list[_Setting]:
    """Settings of one objective and strength, with the names of their runs' folders or models to tell them apart."""
    counts = Counter(setting.shown for setting in settings)
    apart = []
    for setting in settings:
        name = setting.runs[0].path.name if setting.runs else setting.model
        alone = counts[setting.shown] == 1 or not name
        apart.append(setting if alone else replace(setting, suffix=f" ({name})"))
    return apart


def _setting(rows: list[Row], runs: list[Run]) -> _Setting:
    """Of several seeds those that are scored, if any is."""
    scored = {row.run for row in rows if row.corpus is not None}
    if scored:
        rows = [row for row in rows if row.run in scored]
        runs = [run for run in runs if str(run.path) in scored]
    if rows:
        return _Setting(rows, runs, rows[0].objective or "", rows[0].strength, rows[0].model)
    config = runs[0].config
    objective = objectives.parse(config["objective"]) if "objective" in config else None
    name, strength = (objective.name, objective.amount) if objective else ("", None)
    return _Setting([], runs, name, strength, config.get("model"))


Texts = Callable[[Run, str], list[Sample]]


def _reader(corpus: str | None, split: str | None) -> Texts:
    """Reads a run's texts of a strategy on this corpus."""

    def read(run: Run, strategy: str) -> list[Sample]:
        name = f"samples/{samples_name(corpus, split, strategy)}"
        records = run.load(name) if (run.path / name).is_file() else []
        return [
            Sample(record["prefix"], record["continuation"], references=tuple(record.get("references", ())))
            for record in records
            if "continuation" in record
        ]

    return read


def _systems(setting: _Setting, texts: Texts, training: bool) -> list[System]:
    """The model under its first decoding, then under every other."""
    rows = setting.rows
    if not training:
        scored = [row for row in rows if row.corpus is not None]
        rows = scored or [row for row in rows if row.metric == _VALIDATION]
    first = next((row.decoding for row in rows if row.decoding and row.penalty is None), None)
    groups: dict[tuple[str | None, str | None], list[Row]] = {(first, None): []}
    for row in rows:
        groups.setdefault((row.decoding or first, row.penalty), []).append(row)
    systems = []
    for (decoding, penalty), own in groups.items():
        is_first = (decoding, penalty) == (first, None)
        system = System(
            kind="trained" if is_first else "decoded", objective=setting.objective, strength=setting.strength,
            decoding=decoding, penalty=penalty, model=setting.model, suffix=setting.suffix,
        )  # fmt: skip
        system = _with_figures(system, own)
        if setting.runs:
            strategy = ",".join(part for part in (decoding, penalty) if part)
            folders = {row.run for row in own} or {str(run.path) for run in setting.runs}
            mine = [run for run in setting.runs if str(run.path) in folders]
            system = replace(system, samples=texts(mine[0], strategy), runs=len(mine))
        if setting.runs and is_first:
            system = replace(system, log=setting.runs[0].metrics(), made=_made(setting.runs))
        systems.append(system)
    return systems


def _with_figures(system: System, rows: Sequence[Row]) -> System:
    """The means of these rows over seeds; only of figures that all seeds have."""
    counts = Counter(row.metric for row in rows if row.run is not None)
    most = max(counts.values(), default=0)
    means = to_rows(over_seeds(frame(row for row in rows if counts.get(row.metric, most) == most)))
    means = [row for row in means if row.value is not None and row.value == row.value]
    return replace(
        system,
        figures={row.metric: row.value for row in means if row.value is not None},
        deviations={row.metric: row.sd for row in means if row.sd is not None},
        intervals={row.metric: (row.low, row.high) for row in means if row.low is not None and row.high is not None},
        runs=max((row.n or 1 for row in means if row.sd is not None), default=1),
    )


def _means(settings: Sequence[_Setting], human: list[Row]) -> list[Row]:
    """The rows of all settings as means over their seeds, with the names of folders for their paths."""
    names = {str(run.path): run.path.name for setting in settings for run in setting.runs}
    groups = [*(setting.rows for setting in settings), human]
    means = [row for rows in groups for row in to_rows(over_seeds(frame(rows)))]
    return [replace(row, run=names.get(row.run or "", row.run)) for row in means]


def _human_rows(data: DataFrame) -> list[Row]:
    """The human rows of the first run that has some: they are the same for all of one tokenizer."""
    rows = [row for row in to_rows(data) if row.objective == HUMAN and row.run != PAPER]
    return [row for row in rows if (row.run, row.model) == (rows[0].run, rows[0].model)]


def _human(data: DataFrame, runs: Sequence[Run], texts: Texts) -> list[System]:
    rows = _human_rows(data)
    if not rows:
        return []
    folder = next((run for run in runs if str(run.path) == rows[0].run), None)
    samples = texts(folder, HUMAN) if folder else []
    return [replace(_with_figures(System(objective=HUMAN), rows), samples=samples, runs=1)]


def _printed(data: DataFrame) -> list[System]:
    """What the paper prints."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in to_rows(data):
        if row.run == PAPER:
            key = (row.objective or "", row.strength, row.decoding, row.penalty, row.model)
            groups.setdefault(key, []).append(row)
    names = ("objective", "strength", "decoding", "penalty", "model")
    return [
        _with_figures(System(kind="paper", suffix=", in the paper", **dict(zip(names, key, strict=True))), rows)
        for key, rows in groups.items()
    ]


def _notes(runs: Sequence[Run], corpus: str | None, split: str | None) -> list[str]:
    """What was noted when the runs were measured, each sentence once."""
    latest = [entry for run in runs for entry in run.evaluations_now()]
    here = [e for e in latest if (e["settings"].get("corpus"), e["settings"].get("split")) == (corpus, split)]
    return list(dict.fromkeys(note for entry in here for note in entry.get("notes", [])))


def _apart(settings: Sequence[_Setting], corpus: str | None, split: str | None) -> tuple[frozenset[str], list[str]]:
    """Figures that were measured on different data, and a note on each kind of them."""
    tokens, texts, validation = (set[Any]() for _ in range(3))
    names: dict[str, set[str]] = {"tokens": set(), "texts": set()}
    for setting in settings:
        for row in setting.rows:
            size = row.new_tokens if row.decoding else row.window
            if row.corpus is not None and size is not None:
                names["texts" if row.decoding else "tokens"].add(row.metric)
                (texts if row.decoding else tokens).add(("size", size))
        for entry in setting.runs[0].evaluations_now() if setting.runs else ():
            about = entry["settings"]
            if (about.get("corpus"), about.get("split")) != (corpus, split) or about.get("objective") == HUMAN:
                continue
            kind, keys = (texts, ("checksum", "prefixes")) if about.get("decoding") else (tokens, _TOKEN_SETTINGS)
            kind.update((key, about[key]) for key in keys if key in about)
        if setting.runs:
            validation.add(json.dumps(setting.runs[0].config.get("sequences", {}).get("validation"), sort_keys=True))
    apart, notes = set[str](), []
    if len(tokens) > len({key for key, _ in tokens}):
        apart |= names["tokens"] - {*_ACROSS_TOKENIZERS}
        notes.append(
            "Perplexity, uniq and Rep/l here are of different chunks, windows or tokenizers: they do not compare, and "
            "none is marked as the best."
        )
    if len(texts) > len({key for key, _ in texts}):
        apart |= names["texts"]
        notes.append("Texts here have different prefixes or lengths: their figures do not compare.")
    if len(validation) > 1:
        apart.add(_VALIDATION)
        if not corpus:
            notes.append("The runs were validated on different text: their validation perplexities do not compare.")
    return frozenset(apart), notes


def _without_seed(config: Mapping[str, Any]) -> str:
    """A config without its seed: runs that agree in it are merged."""

    def cut(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: cut(item) for key, item in sorted(value.items()) if key != "seed"}
        return value

    return json.dumps(cut(config), sort_keys=True)


def _made(runs: Sequence[Run]) -> dict[str, Any]:
    made: dict[str, Any] = {"config": _with_seeds([run.config for run in runs])}
    for name in ("environment", "done"):
        if (runs[0].path / f"{name}.json").is_file():
            made[name] = runs[0].load(name)
    return made


def _with_seeds(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first config, its seeds those of all."""
    merged: dict[str, Any] = {}
    for key, value in configs[0].items():
        if isinstance(value, Mapping):
            merged[key] = _with_seeds([config[key] for config in configs])
        elif key == "seed":
            merged[key] = ", ".join(dict.fromkeys(str(config[key]) for config in configs))
        else:
            merged[key] = value
    return merged
