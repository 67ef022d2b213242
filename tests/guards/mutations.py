"""How many small, seeded mistakes in the code the tests notice."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.guards import verbs

SEED = 19
# The tests of each package and of its direct users; where tests move, both places are named.
TESTS = {
    "sets": ["tests/sets", "tests/functional"],
    "ops": ["tests/ops", "tests/functional", "tests/test_nn.py"],
    "functional": ["tests/functional", "tests/test_nn.py"],
    "metrics": ["tests/metrics", "tests/cli/test_measure.py"],
    "decoding": [
        "tests/decoding",
        "tests/models/test_memory.py",
        "tests/models/test_start.py",
        "tests/models/test_pretrained.py",
        "tests/cli/test_complete.py",
    ],
    "runs": [
        "tests/runs",
        "tests/tasks/training",
        "tests/training",
        "tests/cli/test_evaluate.py",
        "tests/tasks/open_ended/test_evaluate_command.py",
    ],
}
SWAPS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.Mod: ("%", "*"),
}  # fmt: skip
UNCHANGED = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)  # messages and imports stay


def changes(source: str) -> list[tuple[int, str, str]]:
    """(line number from 0, line before, line after) of every mutation of a file."""
    text, made = source.splitlines(), []

    def change(line: int, start: int, end: int, old: str, new: str) -> None:
        """Replace `old` by `new` within bytes start to end of a line, as the syntax tree counts them."""
        whole = text[line - 1].encode()
        if whole[start:end].decode().count(old) == 1:
            middle = whole[start:end].decode().replace(old, new)
            made.append((line - 1, text[line - 1], whole[:start].decode() + middle + whole[end:].decode()))

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        if type(operator) in SWAPS and left.end_lineno == right.lineno:
            change(right.lineno, left.end_col_offset or 0, right.col_offset, *SWAPS[type(operator)])

    def visit(node: ast.AST) -> None:
        if isinstance(node, UNCHANGED):
            return
        if isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                between(left, right, operator)
        elif isinstance(node, ast.BinOp):
            between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                between(left, right, node.op)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            change(node.lineno, node.col_offset, node.end_col_offset or 0, str(node.value), str(node.value + 1))
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)) and node.test.lineno == node.test.end_lineno:
            start, end = node.test.col_offset, node.test.end_col_offset or 0
            condition = text[node.test.lineno - 1].encode()[start:end].decode()
            if "TYPE_CHECKING" not in condition:
                change(node.test.lineno, start, end, condition, f"not ({condition})")
        elif isinstance(node, ast.Return) and node.value and node.value.lineno == node.value.end_lineno == node.lineno:
            start, end = node.value.col_offset, node.value.end_col_offset or 0
            change(node.lineno, start, end, text[node.lineno - 1].encode()[start:end].decode(), "None")
        annotations = [getattr(node, name, None) for name in ("annotation", "returns")]
        for child in ast.iter_child_nodes(node):
            if child not in annotations:
                visit(child)

    visit(ast.parse(source))
    return made


def draw(source: Path, package: str, count: int, seed: int, taken: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """`count` mutations of a package, at most one of a line, and none of a line that is `taken`."""
    files = sorted(path for path in (source / package).rglob("*.py") if not path.name.startswith("triton_"))
    all_changes = [(path, *one) for path in files for one in changes(path.read_text())]
    random.Random(f"{seed} {package}").shuffle(all_changes)
    chosen: list[dict[str, Any]] = []
    for path, line, before, after in all_changes:
        name = str(path.relative_to(source))
        elsewhere = "cuda" in before.lower() or "triton" in before.lower()  # a CPU does not run it
        if len(chosen) < count and (path.name, before) not in taken and not elsewhere:
            taken.add((path.name, before))
            occurrence = path.read_text().splitlines()[:line].count(before)
            one = {"package": package, "file": name, "line": line + 1, "before": before, "after": after}
            chosen.append(one | {"occurrence": occurrence})
    return chosen


def find_again(source: Path, mutation: dict[str, Any]) -> dict[str, Any] | None:
    """The same line in the tree as it is now: best in the same file, then in one of the same name, then anywhere."""
    old, matches = Path(mutation["file"]), []
    for path in sorted(source.rglob("*.py")):
        lines, file = path.read_text().splitlines(), path.relative_to(source)
        same = [place for place, line in enumerate(lines) if line.strip() == mutation["before"].strip()]
        for count, place in enumerate(same):
            rank = (file != old, file.name != old.name, abs(count - mutation["occurrence"]))
            matches.append((*rank, str(file), place, lines[place]))
    if not matches:
        return None
    *_, name, place, before = min(matches)
    indent = before[: len(before) - len(before.lstrip())]
    after = indent + mutation["after"].strip()
    return mutation | {"file": name, "line": place + 1, "before": before, "after": after}


def plan(checkout: Path, replay: Path | None, each: int, packages: list[str] | None) -> dict[str, Any]:
    """The mutations to try, without outcomes."""
    source, chosen, gone = checkout / "src" / "scalegrad", [], []
    taken: set[tuple[str, str]] = set()
    if replay is None:
        for package in packages or TESTS:
            chosen += draw(source, package, each, SEED, taken)
        return {"mutations": chosen, "gone": gone}
    earlier = [one for one in json.loads(replay.read_text())["mutations"] if one["package"] in (packages or TESTS)]
    taken = {(Path(one["file"]).name, one["before"]) for one in earlier}
    for one in earlier:
        fields = {key: one[key] for key in ("package", "file", "line", "before", "after", "occurrence")}
        again = find_again(source, fields)
        if again is None:
            gone.append(f"{one['file']}: {one['before'].strip()}  [{one.get('outcome', 'not tried')}]")
            again = draw(source, one["package"], 1, SEED + 1, taken)[0] | {"drawn_anew": True}
        chosen.append(again)
    return {"mutations": chosen, "gone": gone}


def run_tests(checkout: Path, package: str, mutation: dict[str, Any] | None = None, limit: float | None = None) -> str:
    """ "survived", "killed" or "timeout": what the package's tests make of a copy of src with the mutation in it."""
    environment = verbs.environment(checkout) | {"PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        source = shutil.copytree(checkout / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__"))
        environment["PYTHONPATH"] = os.pathsep.join([str(source), str(checkout)])
        if mutation:
            path = source / "scalegrad" / mutation["file"]
            lines = path.read_text().splitlines(keepends=True)
            lines[mutation["line"] - 1] = mutation["after"] + "\n"
            path.write_text("".join(lines))
        tests = [path for path in TESTS[package] if (checkout / path).exists()]
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-n", "0", "--rootdir", "."]
        command += ["-c", "pyproject.toml", *tests, str(source / "scalegrad" / package)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, cwd=checkout, env=environment, start_new_session=True, **quiet)
        try:
            return "killed" if process.wait(limit) else "survived"
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the group that this process began, and no other
                process.wait()


def record(checkout: Path, file: Path, replay: Path | None, each: int, packages: list[str] | None) -> None:
    """Try every mutation, two at a time, and write the file after each; a second call goes on where it was."""
    recorded = json.loads(file.read_text()) if file.exists() else plan(checkout, replay, each, packages)
    seconds, writing = recorded.setdefault("seconds", {}), threading.Lock()

    def note(part: dict[str, Any], key: str, value: Any) -> None:
        with writing:
            part[key] = value
            unfinished = file.with_suffix(".new")
            unfinished.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
            unfinished.replace(file)

    def check_unchanged(package: str) -> None:
        """The tests must pass on unchanged code; how long they take sets the limit for changed code."""
        began = time.monotonic()
        if run_tests(checkout, package) != "survived":
            raise SystemExit(f"the tests of {package} fail on unchanged code: mutations would teach nothing")
        note(seconds, package, round(time.monotonic() - began))

    def attempt(one: dict[str, Any]) -> None:
        limit = 4 * seconds[one["package"]] + 60
        note(one, "outcome", run_tests(checkout, one["package"], one, limit))
        print(f"{one['outcome']:9} {one['file']}:{one['line']}: {one['after'].strip()}", flush=True)

    waiting = [one for one in recorded["mutations"] if "outcome" not in one]
    needed = [package for package in dict.fromkeys(one["package"] for one in waiting) if package not in seconds]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(check_unchanged, needed))
        list(threads.map(attempt, waiting))
