"""The study server under load: how long an answer takes to be acknowledged, and whether all of them are kept.

python -m tests.study.load --raters 200 --seconds 60 --out benchmarks/study-load-sqlite.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalegrad._version import __version__
from scalegrad.counts import counted
from scalegrad.runs import write_json
from tests.study.postgres import temporary_postgres
from tests.study.raters import Audit, Load, audit, make_folder, run_killed, run_load, server

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def main(argv: list[str]) -> None:
    """Print the result, and store it as JSON."""
    options = _parser().parse_args(argv)
    print(f"{counted(options.raters, 'rater')} for {options.seconds:g} s …", file=sys.stderr)
    result = measure(options)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, result)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(summary(result))
    if options.out:
        print(f"stored in {options.out}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.study.load",
        description="The study server under load, raters and server on this machine.",
        epilog="example: python -m tests.study.load --raters 200 --seconds 60",
    )
    parser.add_argument("--raters", type=int, default=200, help="raters at once")
    parser.add_argument("--seconds", type=float, default=60, help="how long they rate")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds from one answer to the rater's next")
    parser.add_argument(
        "--kill-after", type=int, nargs="+", help="kill the server after so many answers, start another"
    )
    parser.add_argument("--postgres", action="store_true", help="on a temporary PostgreSQL, not on SQLite")
    parser.add_argument("--out", type=Path, help="where the result goes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the load that `options` ask for."""
    busy = os.getloadavg()[0]  # what else the machine was doing
    audits: list[Audit] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "study"
        database = stack.enter_context(temporary_postgres()) if options.postgres else None
        links = make_folder(folder, options.raters, items=int(options.seconds / options.pause) + 2)
        pace = (links, options.seconds, options.pause)
        if options.kill_after:
            load, audits = asyncio.run(run_killed(folder, database, *pace, options.kill_after))
        else:
            address, _ = stack.enter_context(server(folder, database))
            load = asyncio.run(run_load(address, *pace))
        found = audit(folder, database, load)
    return _result(options, load, found, audits) | {
        "machine": f"{platform.machine()}, {counted(os.cpu_count() or 1, 'core')}, raters and server on the same",
        "load_average_before": round(busy, 1),
        "python": platform.python_version(),
        "scalegrad": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _result(options: argparse.Namespace, load: Load, found: Audit, audits: list[Audit]) -> dict[str, Any]:
    return {
        "what": "study server: POST /answer until it is acknowledged, and the next page",
        "database": "PostgreSQL" if options.postgres else "SQLite",
        "raters": options.raters,
        "pause_s": options.pause,
        "seconds": options.seconds,
        "acknowledged": len(load.acknowledged),
        "kills": [
            {"after_answers": answers, "audit_then": asdict(left)}
            for answers, left in zip(options.kill_after or (), audits, strict=True)
        ],
        "audit": asdict(found),
        "retries": load.retries,
        "statuses": load.statuses,
        "answer_ms": _milliseconds(load.answer_seconds),
        "page_ms": _milliseconds(load.page_seconds),
    }


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    return {name: round(1000 * percentile(seconds, share), 1) for name, share in SHARES.items()}


def summary(result: Mapping[str, Any]) -> str:
    """The result in a few lines: what was kept of what was acknowledged, and how long answers and pages took."""
    raters = f"{counted(result['raters'], 'rater')} on {result['database']}"
    lines = [f"{raters}, each answering every {result['pause_s']:g} s for {result['seconds']:g} s; {result['machine']}"]
    lines += [
        f"server killed after {counted(kill['after_answers'], 'answer')}: {_kept(kill['audit_then'])}"
        for kill in result["kills"]
    ]
    sent_again = f"{counted(result['retries'], 'request')} sent again"
    lines.append(f"{counted(result['acknowledged'], 'answer')} acknowledged: {_kept(result['audit'])}; {sent_again}")
    lines.append(f"{'ms':24}" + "".join(f"{name:>9}" for name in SHARES))
    for name, key in (("answer acknowledged", "answer_ms"), ("next page", "page_ms")):
        lines.append(f"{name:24}" + "".join(f"{result[key][share]:9.1f}" for share in SHARES))
    return "\n".join(lines)


def _kept(found: Mapping[str, int]) -> str:
    lost = f"{found['lost']:,} lost, {found['doubled']:,} doubled, {counted(found['gaps'], 'gap')}"
    return f"{found['stored']:,} stored, {lost}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed.

    >>> percentile([5.0, 1.0, 2.0, 4.0, 3.0], 0.8)
    4.0
    """
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


if __name__ == "__main__":
    main(sys.argv[1:])
