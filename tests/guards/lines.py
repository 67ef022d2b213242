"""Line coverage of the whole test suite, for each package and each file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.guards import verbs

STARTUP = "import coverage\ncoverage.process_startup()\n"  # every process of the run is covered: workers, commands
SETTINGS = """[run]
parallel = true
sigterm = true
concurrency = thread,multiprocessing
data_file = {folder}/data
source = {sources}
"""


def record(checkout: Path, tests: list[str] | None = None) -> dict[str, Any]:
    """Run the tests (all, or these) under coverage; a test that fails is counted and does not stop the run."""
    sources = [checkout / "src" / "scalegrad", checkout / "paper", checkout / "benchmarks"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "sitecustomize.py").write_text(STARTUP)
        settings = folder / "settings.ini"
        present = [str(source) for source in sources if any(source.rglob("*.py"))]
        settings.write_text(SETTINGS.format(folder=folder, sources=",".join(present)))
        environment = verbs.environment(checkout)
        path = os.pathsep.join([str(folder), environment["PYTHONPATH"], *_coverage_itself(folder)])
        environment |= {"PYTHONPATH": path, "COVERAGE_PROCESS_START": str(settings)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "worksteal"]
        done = subprocess.run([*command, *(tests or [])], cwd=checkout, env=environment, capture_output=True, text=True)
        summary = done.stdout.strip().splitlines()[-1]
        print(summary, *re.findall(r"^(?:FAILED|ERROR) \S+", done.stdout, re.M), sep="\n", file=sys.stderr)
        del environment["COVERAGE_PROCESS_START"]  # the two below are not to be covered themselves
        options = [f"--rcfile={settings}"]
        for step in (["combine", "-q", *options], ["json", "-q", "-i", *options, "-o", str(folder / "report.json")]):
            subprocess.run([sys.executable, "-m", "coverage", *step], cwd=checkout, env=environment, check=True)
        report = json.loads((folder / "report.json").read_text())["files"]
    files = {}
    for name, measured in sorted(report.items()):
        counts = measured["summary"]
        path = (checkout / name).relative_to(checkout)
        files[str(path)] = {"statements": counts["num_statements"], "covered": counts["covered_lines"]}
    packages: dict[str, dict[str, Any]] = {}
    for name, counts in files.items():
        inside = Path(name).parts
        part = inside[0] if inside[0] != "src" else (inside[2] if len(inside) > 3 else "(top)")
        package = packages.setdefault(part, {"statements": 0, "covered": 0})
        for kind in counts:
            package[kind] += counts[kind]
    for counts in (*files.values(), *packages.values()):
        counts["percent"] = round(100 * counts["covered"] / max(1, counts["statements"]), 2)
    return {"tests": re.sub(r" in [\d.]+s.*", "", summary).strip("= "), "packages": packages, "files": files}


def _coverage_itself(folder: Path) -> list[str]:
    """The path to add so that `coverage` can be imported; where it is not installed, a copy goes into `folder`."""
    if subprocess.run([sys.executable, "-c", "import coverage"], capture_output=True).returncode == 0:
        return []
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", str(folder / "installed"), "coverage"], check=True)
    return [str(folder / "installed")]
