"""Results that are kept as files, and the two illustrations that are computed whenever they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from paper.claims.table import FigureTable, of_rows

SENTENCE = "people who are interested in text are interested in people"
GAMMA, ALPHAS = 0.2, (0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Results:
    """What one run of an experiment gave: the rows of each table, by the corpus it was scored on."""

    name: str  # of the file: the same experiment may have been done with several models
    experiment: str
    tables: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]  # (corpus, rows)
    scale: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""  # "": computed here and now

    def of_corpus(self) -> dict[str, FigureTable]:
        """The rows by the corpus they were scored on."""
        return {
            corpus: of_rows([row for scored, rows in self.tables if scored == corpus for row in rows])
            for corpus in dict.fromkeys(scored for scored, _ in self.tables)
        }

    @property
    def seeds(self) -> int:
        """The most seeds behind a row."""
        return max((row.get("runs", 1) for _, rows in self.tables for row in rows), default=1)


def read_results(folder: str | Path) -> dict[str, Results]:
    """The results in a folder, by name: NAME.json, or NAME/results.json as `python -m paper --out` leaves it.

    NAME may be a path, where there are results of several models: small/wikitext/results.json.
    """
    folder = Path(folder)
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    files |= {path.parent.relative_to(folder).as_posix(): path for path in sorted(folder.glob("*/**/results.json"))}
    found = {}
    for name, path in files.items():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as mistake:
            raise ValueError(f"{path}: not JSON ({mistake})") from None
        results = _read(name, stored, path.relative_to(folder).as_posix())
        if results is not None:
            found[name] = results
    return found


def _read(name: str, stored: Any, file: str) -> Results | None:
    """None of a file that holds something else than rows."""
    if not isinstance(stored, dict):
        return None
    tables = stored.get("tables", [stored])
    tables = [table for table in tables if isinstance(table, dict) and isinstance(table.get("rows"), list)]
    kept = [(table.get("corpus", ""), table["rows"]) for table in tables]
    if not kept:
        return None
    return Results(name, stored.get("name", name), kept, stored.get("scale", ""), stored.get("made", {}), file)


def illustrations() -> dict[str, Results]:
    """The gradient figure and the novel set: exact, without training, computed by the library's own losses and sets."""
    return {"gradients": _gradients(), "novel-set": _novel_set()}


def _gradients() -> Results:
    from paper.gradients import gradient_curves

    rows: list[dict[str, Any]] = []
    for alpha in ALPHAS:
        curves = gradient_curves(GAMMA, alpha)
        above = curves.at_target[-1]
        figures = {
            "turns_negative_at": curves.turns_negative_at or 0.0,
            "norm_growth": above.norm[-1] - above.norm[0],  # at the target, as p_k rises, p_neg above that place
            "lowered": float(not curves.step_always_raises),  # p_k, by a descent step, at any place tried
        }
        rows.append(_row(f"UL α={alpha:g}", figures))
    sg, mle, p = curves.scale_grad, curves.mle, curves.p
    novel, seen = ([norm / at for norm, at in zip(sg[kind], p, strict=True)] for kind in ("NT-N", "NT-NN"))
    figures = {
        "least_novel_factor": min(novel),
        "most_novel_factor": max(novel),
        "least_seen_factor": min(seen),
        "least_T_N_over_MLE": min(a - b for a, b in zip(sg["T-N"], mle["T"], strict=True)),
        "most_T_NN_over_MLE": max(a - b for a, b in zip(sg["T-NN"], mle["T"], strict=True)),
        "most_NT_N_over_MLE": max(a - b for a, b in zip(sg["NT-N"], mle["NT"], strict=True)),
        "least_NT_NN_over_MLE": min(a - b for a, b in zip(sg["NT-NN"], mle["NT"], strict=True)),
        "most_target_rise": max(b - a for kind in ("T-N", "T-NN") for a, b in pairwise(sg[kind])),
        "least_other_rise": min(b - a for kind in ("NT-N", "NT-NN") for a, b in pairwise(sg[kind])),
    }
    rows.append(_row(f"SG γ={GAMMA:g}", figures))
    return Results("gradients", "gradients", [("", rows)])


def _novel_set() -> Results:
    from paper.novel_set import novel_set

    found = novel_set(SENTENCE.split())
    sizes = [step.n_novel for step in found.steps]
    figures = {
        "missing_at_first": float(found.vocab - sizes[0]),
        "most_growth": float(max(after - before for before, after in pairwise(sizes))),
        "shrunk": float(sizes[0] - sizes[-1]),
    }
    return Results("novel-set", "novel-set", [("", [_row("novel set", figures)])])


def _row(label: str, figures: Mapping[str, float]) -> dict[str, Any]:
    return {"label": label, "kind": "trained", "runs": 0, "figures": dict(figures)}
