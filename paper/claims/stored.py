"""Results that are kept as files of rows, and the two illustrations that are computed whenever the page is made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from paper.claims.table import Table, with_only_strengths
from paper.gradients import gradient_curves
from paper.novel_set import novel_set
from paper.printed import PAPER
from paper.rows import by_length
from scalegrad.results.comparison import System, compare
from scalegrad.results.comparison.strengths import choose_strengths
from scalegrad.results.frame import frame
from scalegrad.runs import Row, read_rows
from scalegrad.tasks.summarization.evaluation import CHOICE

SENTENCE = "people who are interested in text are interested in people"
GAMMA, ALPHAS = 0.2, (0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Results:
    """What one run of experiments gave: a table for each corpus it was scored on."""

    name: str  # of the file: the same experiment may have been done with several models
    experiments: Sequence[str]
    tables: Mapping[str, Table]
    scale: str = ""
    file: str = ""  # "": computed here and now

    @property
    def seeds(self) -> int:
        """The most seeds behind a row."""
        return max((row.runs for table in self.tables.values() for row in table.rows), default=1)


def read_results(folder: str | Path) -> dict[str, Results]:
    """The results in a folder, by name: NAME.jsonl, or NAME/results.jsonl as `python -m paper --out` leaves it.

    What is known of them is in environments.json, or in NAME/environment.json. NAME may be a path, where there are
    results of several models: small/wikitext/results.jsonl.
    """
    folder = Path(folder)
    stored = folder / "environments.json"
    known = {folder / f"{name}.jsonl": about for name, about in (_read(stored) if stored.is_file() else {}).items()}
    for path in sorted(folder.glob("*/**/results.jsonl")):
        if "experiments" in (about := _read(path.with_name("environment.json"))):  # else the folder of a run
            known[path] = about
    results = {}
    for path, about in known.items():
        name = path.stem if path.parent == folder else path.parent.relative_to(folder).as_posix()
        file = path.relative_to(folder).as_posix()
        try:
            tables = tables_of(read_rows(path))
        except json.JSONDecodeError as mistake:
            raise ValueError(f"{path}: not JSON ({mistake})") from None
        results[name] = Results(name, about["experiments"], tables, about.get("scale", ""), file)
    return results


def tables_of(rows: Sequence[Row]) -> dict[str, Table]:
    """By corpus, without the paper's rows.

    The validation sets of directed tasks test nothing: the first seed's scores there choose the strengths.
    """
    groups: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        if row.run != PAPER and row.corpus and (row.task == "open_ended" or row.split == "test"):
            groups.setdefault((row.corpus, row.split), []).append(row)
    tables = {}
    for (corpus, _), own in groups.items():
        scores = [row for row in rows if (row.corpus, row.metric, row.seed) == (corpus, CHOICE, 0)]
        compared = choose_strengths(compare(frame(by_length(own))), frame(scores), CHOICE)
        tables[compared.corpus] = Table(with_only_strengths(compared.systems))
    return tables


def illustrations() -> dict[str, Results]:
    """The gradient figure and the novel set: exact, without training, computed by the library's own losses and sets."""
    rows = []
    extremes: dict[str, float] = {}
    for alpha in ALPHAS:
        curves = gradient_curves(GAMMA, alpha)
        above = curves.at_target[-1]
        figures = {
            "turns_negative_at": curves.turns_negative_at or 0.0,
            "norm_growth": above.norm[-1] - above.norm[0],  # at the target, as p_k rises, p_neg above that place
            "lowered": float(not curves.step_always_raises),  # p_k, by a descent step, at any place tried
        }
        rows.append(System(objective="ul", strength=alpha, figures=figures, runs=0))
    for kind, norms in curves.scale_grad.items():  # target or not (T, NT), novel or not (N, NN)
        lines = {
            "factor": [norm / p for norm, p in zip(norms, curves.p, strict=True)],
            "over MLE": [norm - mle for norm, mle in zip(norms, curves.mle[kind.split("-")[0]], strict=True)],
            "rise": [after - before for before, after in pairwise(norms)],
        }
        extremes |= {f"least {name} {kind}": min(values) for name, values in lines.items()}
        extremes |= {f"most {name} {kind}": max(values) for name, values in lines.items()}
    rows.append(System(objective="sg", strength=GAMMA, figures=extremes, runs=0))
    shown = novel_set(SENTENCE.split())
    sizes = [step.n_novel for step in shown.steps]
    growth = max(after - before for before, after in pairwise(sizes))
    novel = {"missing_at_first": shown.vocab - sizes[0], "most_growth": growth, "shrunk": sizes[0] - sizes[-1]}
    tables = {"gradients": Table(rows), "novel-set": Table([System("novel set", novel, runs=0)])}
    return {name: Results(name, [name], {"": table}) for name, table in tables.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except json.JSONDecodeError as mistake:
        raise ValueError(f"{path}: not JSON ({mistake})") from None
