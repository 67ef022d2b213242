"""From the experiment's summaries to its tables: scores with intervals, over seeds, beside the paper's.

    python -m scalegrad.lab.summarization_scores abstracts.json news.json --test test-500.csv.xz --out docs/results

Needs no GPU. An interval is a 95% bootstrap over texts, of the mean over seeds of each text.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalegrad.data.embedded import scitldr
from scalegrad.data.pairs import Pair, read_pairs
from scalegrad.integrations.objective import Objective
from scalegrad.metrics import bootstrap, paired_bootstrap, permutation_test
from scalegrad.metrics.significance import mean as mean_of
from scalegrad.report.paper import TABLES
from scalegrad.runs.atomic import write_json, write_text
from scalegrad.tasks.summarization.scoring import human, per_text

Floats = NDArray[np.float64]
Values = dict[str, Floats]

COLUMNS = {
    "rouge_1": "R-1",
    "rouge_2": "R-2",
    "rouge_l": "R-L",
    "moverscore_1": "Mover-1",
    "rep_1": "Rep-1",
    "rep_2": "Rep-2",
    "rep_3": "Rep-3",
    "words": "words",
    "novelty_2": "novel pairs",
}


def score_experiment(experiment: dict[str, Any], pairs: Sequence[Pair], mover: bool = True) -> dict[str, Any]:
    """Rows of figures: each objective (mean over its seeds), and the MLE model under each stochastic decoding."""
    by_id = {pair.id: pair for pair in pairs}
    missing = [name for name in experiment["test"] if name not in by_id]
    if missing:
        raise ValueError(
            f"test: {len(missing)} of the {len(experiment['test'])} articles are not there ({missing[0]}, …)"
        )
    test = [by_id[name] for name in experiment["test"]]
    systems: dict[str, list[Values]] = {}
    for result in experiment["results"]:
        for strategy, texts in result["summaries"].items():
            label = Objective.parse(result["objective"]).label + ("" if strategy == "beam" else f", {strategy}")
            systems.setdefault(label, []).append(per_text(texts, test, mover))
    base = systems.get("MLE")
    rows = {label: _row(values, base if label != "MLE" else None) for label, values in systems.items()}
    chosen = {
        str(Objective(name, choice["strength"]).label): choice["validation_scores"]
        for name, choice in experiment["chosen"].items()
    }
    betas = {
        f"{result['objective']} seed {result['seed']}": result["evaluation"]["length_normalisation"]
        for result in experiment["results"]
    }
    kept = ("experiment", "settings", "environment", "seconds")
    return {
        **{key: experiment[key] for key in kept},
        "rows": rows,
        "human": human(test),
        "chosen_on_validation": chosen,
        "length_normalisation": betas,
        "runs": [
            {"objective": result["objective"], "seed": result["seed"], **result["trained"]}
            for result in experiment["results"]
        ],
        "test_texts": len(test),
    }


def _row(seeds: Sequence[Values], base: Sequence[Values] | None) -> dict[str, Any]:
    """A system's figures; against the baseline, text by text, where there is one."""
    mean = over_seeds(seeds)
    figures: dict[str, Any] = {}
    for name, column in mean.items():
        interval = bootstrap(column)
        spread = [mean_of(values[name]) for values in seeds]
        figures[name] = {"mean": interval.estimate, "low": interval.low, "high": interval.high}
        if len(seeds) > 1:
            figures[name]["deviation_over_seeds"] = float(np.std(spread, ddof=1))
    row: dict[str, Any] = {"seeds": len(seeds), "figures": figures}
    if base is not None:
        theirs = over_seeds(base)
        row["minus_mle"] = {name: _difference(mean[name], theirs[name]) for name in mean}
    return row


def over_seeds(seeds: Sequence[Values]) -> Values:
    """Each text's mean over seeds; a text without a figure in one of them has none."""
    return {name: np.mean([values[name] for values in seeds], axis=0) for name in seeds[0]}


def _difference(ours: Floats, theirs: Floats) -> dict[str, float]:
    kept = ~(np.isnan(ours) | np.isnan(theirs))
    if not kept.any():
        return {"mean": float("nan"), "low": float("nan"), "high": float("nan"), "p": 1.0}
    interval = paired_bootstrap(ours[kept], theirs[kept])
    test = permutation_test(ours[kept], theirs[kept], resamples=2000)
    return {"mean": interval.estimate, "low": interval.low, "high": interval.high, "p": test.p_value}


def table(scored: dict[str, Any]) -> str:
    """The rows as a Markdown table: mean, and the interval below it.

    >>> row = {"seeds": 1, "figures": {"rouge_1": {"mean": 20.0, "low": 19.0, "high": 21.0}}}
    >>> print(table({"rows": {"MLE": row}, "human": {}}).splitlines()[2])
    | MLE | 20.0 (19.0–21.0) |
    """
    names = [name for name in COLUMNS if all(name in row["figures"] for row in scored["rows"].values())]
    lines = ["| | " + " | ".join(COLUMNS[name] for name in names) + " |", "|---|" + "---:|" * len(names)]
    for label, row in scored["rows"].items():
        seeds = f" ({row['seeds']} seeds)" if row["seeds"] > 1 else ""
        lines.append(f"| {label}{seeds} | " + " | ".join(_cell(name, row["figures"][name]) for name in names) + " |")
    if scored["human"]:
        cells = [_cell(name, scored["human"][name]) if name in scored["human"] else "" for name in names]
        lines.append("| Reference | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def differences(scored: dict[str, Any]) -> str:
    """What each row gains over MLE with the beam, text by text, as a Markdown table."""
    names = [name for name in COLUMNS if all(name in row["figures"] for row in scored["rows"].values())]
    lines = ["| minus MLE | " + " | ".join(COLUMNS[name] for name in names) + " |", "|---|" + "---:|" * len(names)]
    for label, row in scored["rows"].items():
        if "minus_mle" in row:
            cells = [f"{_signed(name, row['minus_mle'][name])} p {row['minus_mle'][name]['p']:.3f}" for name in names]
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _title(column: str) -> str:
    return COLUMNS.get(column, column)


def _digits(name: str) -> int:
    return 3 if name.startswith(("rep", "novelty")) else 1


def _cell(name: str, figure: dict[str, float]) -> str:
    digits = _digits(name)
    return f"{figure['mean']:.{digits}f} ({figure['low']:.{digits}f}–{figure['high']:.{digits}f})"


def _signed(name: str, figure: dict[str, float]) -> str:
    digits = _digits(name)
    return f"{figure['mean']:+.{digits}f} ({figure['low']:+.{digits}f} to {figure['high']:+.{digits}f})"


def markdown(scored: dict[str, dict[str, Any]]) -> str:
    """The stored page: every experiment's tables, and the paper's figures."""
    lines = ["# Summarisation: results", "", _INTRODUCTION]
    for name, one in scored.items():
        gpu = one["environment"].get("hardware", one["environment"])
        title = "BertSum (MiniLM) on SciTLDR" if name == "abstracts" else "A causal LM on CNN/DM news"
        lines += [
            "",
            f"## {title}",
            "",
            f"{one['test_texts']} test texts; trained and decoded in {one['seconds']:.0f} s.",
        ]
        lines += ["", table(one), "", differences(one), "", f"Machine: `{json.dumps(gpu, ensure_ascii=False)}`"]
    lines += ["", "## The paper's figures", ""]
    for name in ("summarization cnn/dm", "summarization nyt50", "summarization decoding"):
        paper = TABLES[name]
        lines += [f"Table {paper.number}: {paper.title}", "", "| | " + " | ".join(map(_title, paper.columns)) + " |"]
        lines += ["|---|" + "---:|" * len(paper.columns)]
        for label, row in paper.rows.items():
            lines.append(f"| {label} | " + " | ".join(f"{row[column]:.2f}" for column in paper.columns) + " |")
        lines.append("")
    return "\n".join(lines) + "\n"


_INTRODUCTION = """Made by `python -m scalegrad.lab.summarization` and `python -m scalegrad.lab.summarization_scores`;
the figures with everything that was chosen are in `summarization.json` beside this page. In brackets: 95% bootstrap
interval over texts. α, γ and the β of each run were chosen on the validation set by the mean of ROUGE-1, -2 and -L; the
checkpoint is the one with the least plain validation NLL. These models saw some 2,000 or 900 pairs, the paper's
287,000: rows compare with each other, not with the paper's."""


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m scalegrad.lab.summarization_scores", description=__doc__.split("\n")[0]
    )
    parser.add_argument("files", nargs="+", help="abstracts.json, news.json")
    parser.add_argument("--test", help="the news experiment's file of test pairs")
    parser.add_argument("--out", required=True, help="folder of summarization.json and summarization.md")
    parser.add_argument("--no-mover", action="store_true", help="leave MoverScore out (a minute a system on a CPU)")
    arguments = parser.parse_args(argv)
    scored = {}
    for file in arguments.files:
        experiment = json.loads(Path(file).read_text(encoding="utf-8"))
        name = experiment["experiment"]
        if name == "news" and arguments.test is None:
            raise SystemExit("--test must name the file of test pairs: news texts are not in the experiment's file")
        pairs = scitldr("test") if name == "abstracts" else read_pairs(arguments.test)
        scored[name] = score_experiment(experiment, pairs, not arguments.no_mover)
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "summarization.json", scored)
    write_text(out / "summarization.md", markdown(scored))


if __name__ == "__main__":
    main()
