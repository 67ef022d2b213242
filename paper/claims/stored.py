"""Results that are kept as files, and the two illustrations that are computed whenever the page is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from paper.claims.table import Table
from paper.gradients import gradient_curves
from paper.novel_set import novel_set
from scalegrad.results.comparison.systems import System

SENTENCE = "people who are interested in text are interested in people"
GAMMA, ALPHAS = 0.2, (0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Results:
    """What one run of an experiment gave: a table for each corpus it was scored on."""

    name: str  # of the file: the same experiment may have been done with several models
    experiment: str
    tables: Mapping[str, Table]
    scale: str = ""
    file: str = ""  # "": computed here and now

    @property
    def seeds(self) -> int:
        """The most seeds behind a row."""
        return max((row.runs for table in self.tables.values() for row in table.rows), default=1)


def read_results(folder: str | Path) -> dict[str, Results]:
    """The results in a folder, by name: NAME.json, or NAME/results.json as `python -m paper --out` leaves it.

    NAME may be a path, where there are results of several models: small/wikitext/results.json.
    """
    folder = Path(folder)
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    files |= {path.parent.relative_to(folder).as_posix(): path for path in sorted(folder.glob("*/**/results.json"))}
    results = {}
    for name, path in files.items():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as mistake:
            raise ValueError(f"{path}: not JSON ({mistake})") from None
        if tables := _tables(stored):
            file = path.relative_to(folder).as_posix()
            results[name] = Results(name, stored.get("name", name), tables, stored.get("scale", ""), file)
    return results


def _tables(stored: Any) -> dict[str, Table]:
    """By corpus, without the paper's own rows; of two with one label the first. None where a file has no rows."""
    rows: dict[str, dict[str, System]] = {}
    for table in stored.get("tables", [stored]) if isinstance(stored, dict) else []:
        if isinstance(table, dict) and isinstance(table.get("rows"), list):
            of_corpus = rows.setdefault(table.get("corpus", ""), {})
            for row in table["rows"]:
                if row["kind"] != "paper":
                    known = {field.name: row[field.name] for field in fields(System) if field.name in row}
                    of_corpus.setdefault(row["label"], System(**known))
    return {corpus: Table(list(of_corpus.values())) for corpus, of_corpus in rows.items()}


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
        rows.append(System(f"UL α={alpha:g}", figures, runs=0))
    for kind, norms in curves.scale_grad.items():  # target or not (T, NT), novel or not (N, NN)
        lines = {
            "factor": [norm / p for norm, p in zip(norms, curves.p, strict=True)],
            "over MLE": [norm - mle for norm, mle in zip(norms, curves.mle[kind.split("-")[0]], strict=True)],
            "rise": [after - before for before, after in pairwise(norms)],
        }
        extremes |= {f"least {name} {kind}": min(values) for name, values in lines.items()}
        extremes |= {f"most {name} {kind}": max(values) for name, values in lines.items()}
    rows.append(System(f"SG γ={GAMMA:g}", extremes, runs=0))
    shown = novel_set(SENTENCE.split())
    sizes = [step.n_novel for step in shown.steps]
    growth = max(after - before for before, after in pairwise(sizes))
    novel = {"missing_at_first": shown.vocab - sizes[0], "most_growth": growth, "shrunk": sizes[0] - sizes[-1]}
    tables = {"gradients": Table(rows), "novel-set": Table([System("novel set", novel, runs=0)])}
    return {name: Results(name, name, {"": table}) for name, table in tables.items()}
