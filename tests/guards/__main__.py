"""Record what a checkout does before code moves, and compare afterwards.

    python -m tests.guards verbs     CHECKOUT DIR     # the --json of every verb
    python -m tests.guards losses    CHECKOUT DIR     # values and gradients of 300 loss calls
    python -m tests.guards coverage  CHECKOUT DIR     # lines covered, for each package and file
    python -m tests.guards mutations CHECKOUT DIR [--replay BEFORE/mutations.json]
    python -m tests.guards compare   BEFORE AFTER     # two such folders

Each of the first four writes DIR/NAME.json. Run them with the Python that has all extras, from the checkout that holds
this file; CHECKOUT may be another one. The four use one core, except `coverage` and `mutations`, which use two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.guards import lines, mutations, verbs

# Packages that exchange code when files move are counted together: all their names, before and after.
TOGETHER = (
    ("tasks", "models", "training"),
    ("report", "results", "lab", "cli", "paper", "bench", "benchmarks"),
    ("integrations", "objectives"),
)


def record_losses(checkout: Path) -> Any:
    """In a process of its own, which imports the checkout's package."""
    command = [sys.executable, str(Path(__file__).with_name("losses.py"))]
    done = subprocess.run(command, env=verbs.environment(checkout), cwd=checkout, check=True, stdout=subprocess.PIPE)
    recorded = json.loads(done.stdout)
    if not Path(recorded["imported"]).is_relative_to(checkout):
        raise SystemExit(f"scalegrad was imported from {recorded['imported']}, not from {checkout}")
    return recorded["calls"]


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """One line for each place where two JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        pairs = [(f"{path}/{key}", before.get(key, "(absent)"), after.get(key, "(absent)")) for key in keys]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(f"{path}/{place}", *pair) for place, pair in enumerate(zip(before, after, strict=True))]
    else:
        short = [text if len(text) < 200 else f"{text[:200]}…" for text in map(str, (before, after))]
        return [] if before == after else [f"  {path}\n    before: {short[0]}\n    after:  {short[1]}"]
    return [line for one in pairs for line in differences(one[1], one[2], one[0])]


def compare(before: Path, after: Path) -> int:
    """Print the report; 1 if an output differs or a rate is lower."""
    worse = False
    for name in ("verbs", "losses", "coverage", "mutations"):
        files = [folder / f"{name}.json" for folder in (before, after)]
        if not all(file.exists() for file in files):
            print(f"{name}: not in both folders")
            continue
        old, new = (json.loads(file.read_text()) for file in files)
        if name in ("verbs", "losses"):
            differ = differences(old, new)
            print(f"{name}: {len(old)} recorded, {len(differ) or 'no'} differences", *differ, sep="\n")
            worse |= bool(differ)
            continue
        print(f"\n{name:30} {'before':>24} {'after':>24}")
        for label, one, two in coverage_rows(old, new) if name == "coverage" else kill_rows(old, new):
            shares = [pair[0] / pair[1] if pair and pair[1] else None for pair in (one, two)]
            lower = None not in shares and shares[1] < shares[0]
            texts = [f"{pair[0]:,} of {pair[1]:,} {share:.1%}" if share is not None else "-"
                     for pair, share in zip((one, two), shares, strict=True)]  # fmt: skip
            print(f"{label:30} {texts[0]:>24} {texts[1]:>24}{'  LOWER' if lower else ''}")
            worse |= lower
    return int(worse)


def coverage_rows(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Each package before and after; then single files that are covered less than before."""

    def counts(parts: Any, names: Iterable[str]) -> tuple[int, int]:
        measured = [parts[name] for name in names if name in parts]
        return sum(one["covered"] for one in measured), sum(one["statements"] for one in measured)

    print(f"{'tests':30} {old['tests']}  ->  {new['tests']}")
    alone = [(name,) for name in [*old["packages"], *new["packages"]] if not any(name in group for group in TOGETHER)]
    for group in dict.fromkeys([*alone, *TOGETHER]):
        names = [name for name in group if name in old["packages"] or name in new["packages"]]
        yield " + ".join(names), counts(old["packages"], names), counts(new["packages"], names)
    yield "all", counts(old["packages"], old["packages"]), counts(new["packages"], new["packages"])
    names = [[Path(file).name for file in side["files"]] for side in (old, new)]
    for file, measured in new["files"].items():
        same = [path for path in old["files"] if Path(path).name == Path(file).name]
        before = (
            file if file in old["files"] else same[0] if len(same) == names[1].count(Path(file).name) == 1 else None
        )
        if before and measured["percent"] < old["files"][before]["percent"]:
            yield file.removeprefix("src/scalegrad/"), counts(old["files"], [before]), counts(new["files"], [file])


def kill_rows(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Mutations killed, of those tried, in each package."""
    print(*(f"gone, and another one drawn: {line}" for line in new["gone"]), sep="\n")
    for package in [*dict.fromkeys(one["package"] for one in old["mutations"]), "all"]:
        outcomes = [
            [one["outcome"] != "survived" for one in side["mutations"]
             if "outcome" in one and package in (one["package"], "all")]
            for side in (old, new)
        ]  # fmt: skip
        yield package, *((sum(killed), len(killed)) for killed in outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.guards", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=["verbs", "losses", "coverage", "mutations", "compare"])
    parser.add_argument("checkout", type=Path, help="the root of a checkout; for compare, the folder BEFORE")
    parser.add_argument("folder", type=Path, help="where NAME.json goes; for compare, the folder AFTER")
    parser.add_argument("--only", nargs="*", help="groups of verbs, test files for coverage, packages for mutations")
    parser.add_argument("--replay", type=Path, help="mutations: the same lines as in this earlier record")
    parser.add_argument("--each", type=int, default=10, help="mutations: how many in each package")
    options = parser.parse_args()
    checkout, folder = options.checkout.resolve(), options.folder.resolve()
    if options.command == "compare":
        return compare(checkout, folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{options.command}.json"
    os.environ["OMP_NUM_THREADS"] = "1"  # sums depend on the number of threads in their last bit
    if options.command == "mutations":
        mutations.record(checkout, file, options.replay, options.each, options.only)
        return 0
    recorders = {"verbs": lambda: verbs.record(checkout, options.only), "losses": lambda: record_losses(checkout)}
    recorders["coverage"] = lambda: lines.record(checkout, options.only)
    recorded = recorders[options.command]()
    file.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    print(f"{file} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
