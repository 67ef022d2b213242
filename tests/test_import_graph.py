"""Who may import whom: left uses right, never back. Read from the syntax of every file, so that nothing hides."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "scalegrad"

# Each part of the package, from what may use everything to what uses nothing.
LAYERS = (
    ("cli",),
    ("lab", "tasks", "study"),
    ("results", "training"),
    ("integrations", "decoding"),
    ("models", "data", "metrics", "runs"),
    ("objectives",),
    ("nn",),
    ("functional",),
    ("ops",),
    ("sets", "gamma"),
)
LAYER = {part: depth for depth, parts in enumerate(LAYERS) for part in parts}
ANYWHERE = (
    "counts",
    "extras",
    "options",
    "_hub",
    "_lazy",
    "_memory",
    "_places",
    "_version",
)  # small, and importing none of the others
PUBLIC = ("nn", "functional", "sets", "gamma", "_lazy", "_version")  # what the package's own __init__ may name
NEIGHBOURS = (("lab", "tasks"),)  # (user, used) of one layer: many runs at once are runs of a task
LOSSES = ("nn", "functional", "ops")
WITHOUT_LOSSES = ("metrics", "study")
TORCH_ALONE = (*PUBLIC, "ops", "counts", "extras", "")  # parts that `import scalegrad` loads; "" is its __init__


def imported(path: Path, package: list[str]) -> list[tuple[str, int]]:
    """(dotted name, line) of every import of a file, at any depth, those by name included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            found += [(f"{base}.{alias.name}", node.lineno) for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__", "need"):
                found.append((str(node.args[0].value), node.lineno))
    return found


def complaint(part: str, file: str, name: str, parts: set[str]) -> str | None:
    """What is wrong with a file of `part` importing `name`, if anything."""
    top, *rest = name.split(".")
    if top == "scalegrad":
        used = rest[0] if rest and rest[0] in parts else "nn"  # the losses are what the package itself offers
        if part == "":
            return None if used in PUBLIC else f"the package may not import {used}"
        if used == part or used in ANYWHERE or (part, used) in NEIGHBOURS:
            return None
        if part in ANYWHERE or LAYER[part] >= LAYER[used]:
            return f"{part} may not import {used}"
        if part in WITHOUT_LOSSES and used in LOSSES:
            return f"{part} may not import losses ({used})"
    elif top in ("paper", "benchmarks", "tests"):
        return f"the library may not import {top}"
    elif top == "triton":
        if part != "ops" or not file.startswith("triton_"):
            return "only ops/triton_* may import triton"
    elif part in TORCH_ALONE and top != "torch" and top not in sys.stdlib_module_names:
        return f"{part or 'the package'} may import torch alone, not {top}"
    return None


def complaints(source: Path) -> list[str]:
    """One sentence for each import that the graph does not allow."""
    files = sorted(source.rglob("*.py"))
    parts = {(file.relative_to(source).parts[0]).removesuffix(".py") for file in files}
    found = [f"{part} has no place in the import graph" for part in parts - {*LAYER, *ANYWHERE, "__init__", "__main__"}]
    for file in files:
        inside = file.relative_to(source)
        part = "" if inside.parts[0] == "__init__.py" else inside.parts[0].removesuffix(".py")
        if part not in (*LAYER, *ANYWHERE, ""):
            continue
        package = ["scalegrad", *inside.parts[:-1]]
        for name, line in imported(file, package):
            problem = complaint(part, file.name, name, parts)
            if problem:
                found.append(f"{inside.as_posix()}:{line}: {problem}")
    return found


def outsiders(root: Path) -> list[str]:
    """Imports of private names by paper/ and benchmarks/, which are users of the library."""
    return [
        f"{file.relative_to(root).as_posix()}:{line}: {name} is private"
        for folder in ("paper", "benchmarks")
        for file in sorted((root / folder).rglob("*.py"))
        for name, line in imported(file, list(file.relative_to(root).parts[:-1]))
        if name.startswith("scalegrad.") and any(part.startswith("_") for part in name.split("."))
    ]


def test_the_paper_and_the_benchmarks_use_public_names():
    root = SOURCE.parents[1]
    assert outsiders(root) == []
    assert len(list((root / "paper").rglob("*.py"))) > 20


def test_a_private_name_is_found(tmp_path):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "table.py").write_text("import json\nfrom scalegrad.ops.fused import _scaled\n")
    assert outsiders(tmp_path) == ["paper/table.py:2: scalegrad.ops.fused._scaled is private"]


def test_import_graph():
    assert complaints(SOURCE) == []


def test_import_graph_reads_the_real_files():
    """Not an empty folder: the imports everybody knows of are among those read."""
    names = {name for name, _ in imported(SOURCE / "nn.py", ["scalegrad"])}
    assert "scalegrad.functional.losses.scale_grad_loss" in names
    assert len(list(SOURCE.rglob("*.py"))) > 20


GOOD = {
    "__init__.py": "from scalegrad import functional\nfrom scalegrad.nn import Loss\n",
    "extras.py": "import importlib\n",
    "sets/__init__.py": "import torch\n",
    "sets/seen.py": "from scalegrad.sets import x\nfrom . import y\n",
    "gamma.py": "import math, torch.nn\n",
    "ops/__init__.py": "",
    "ops/dispatch.py": "from ..sets import seen\ndef f():\n    from scalegrad.ops.triton_rows import g\n",
    "ops/triton_rows.py": "import triton\nimport triton.language as tl\n",
    "functional/__init__.py": "from scalegrad import ops, sets\n",
    "nn.py": "from scalegrad import functional as SF\nfrom .gamma import a\n",
    "metrics/__init__.py": "import numpy\nfrom scalegrad.extras import need\nneed('sacrebleu', extra='measure')\n",
    "data/__init__.py": "",
    "results/__init__.py": "from scalegrad import ScaleGradLoss, metrics, data\n",
    "study/__init__.py": "from scalegrad import results\n",
    "cli/__init__.py": "import importlib\nimportlib.import_module('scalegrad.results')\nfrom .. import study, ops\n",
}

BAD = [
    ("ops/dispatch.py", "from scalegrad.functional import losses", "ops may not import functional"),
    ("ops/dispatch.py", "import scalegrad.nn", "ops may not import nn"),
    ("ops/dispatch.py", "from scalegrad import functional", "ops may not import functional"),
    ("ops/dispatch.py", "from .. import functional", "ops may not import functional"),
    ("ops/dispatch.py", "from ..nn import Loss", "ops may not import nn"),
    ("sets/seen.py", "def f():\n    if True:\n        from scalegrad import ops", "sets may not import ops"),
    ("sets/seen.py", "from scalegrad.gamma import check", "sets may not import gamma"),
    ("sets/seen.py", "import scalegrad", "sets may not import nn"),
    ("sets/seen.py", "from scalegrad import ScaleGradLoss", "sets may not import nn"),
    ("gamma.py", "import importlib; importlib.import_module('scalegrad.nn')", "gamma may not import nn"),
    ("gamma.py", "__import__('scalegrad.functional')", "gamma may not import functional"),
    ("nn.py", "from scalegrad import metrics", "nn may not import metrics"),
    ("metrics/__init__.py", "from scalegrad.data import read", "metrics may not import data"),
    (
        "metrics/__init__.py",
        "from scalegrad.functional import scale_grad",
        "metrics may not import losses (functional)",
    ),
    ("metrics/__init__.py", "from scalegrad import ScaleGradLoss", "metrics may not import losses (nn)"),
    ("study/__init__.py", "def f(): import scalegrad.ops.dispatch", "study may not import losses (ops)"),
    ("results/__init__.py", "from scalegrad import cli", "results may not import cli"),
    ("extras.py", "from scalegrad import sets", "extras may not import sets"),
    ("__init__.py", "from scalegrad import metrics", "the package may not import metrics"),
    ("__init__.py", "import numpy", "the package may import torch alone, not numpy"),
    (
        "functional/__init__.py",
        "def f():\n    import rich.table",
        "functional may import torch alone, not rich",
    ),
    ("nn.py", "from scalegrad.extras import need\nneed('rich', extra='cli')", "nn may import torch alone, not rich"),
    ("ops/dispatch.py", "def f(): import triton", "only ops/triton_* may import triton"),
    ("results/__init__.py", "from triton import jit", "only ops/triton_* may import triton"),
    ("results/__init__.py", "from paper import printed", "the library may not import paper"),
    ("helpers/__init__.py", "", "helpers has no place in the import graph"),
    ("utils.py", "", "utils has no place in the import graph"),
]


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, code in files.items():
        path = folder / "scalegrad" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return folder / "scalegrad"


def test_the_checker_passes_a_good_tree(tmp_path):
    assert complaints(tree(tmp_path, GOOD)) == []


@pytest.mark.parametrize(("file", "code", "problem"), BAD, ids=[f"{file}: {problem}" for file, _, problem in BAD])
def test_the_checker_can_fail(tmp_path, file, code, problem):
    """One forbidden line in an otherwise good tree, and it is found where it stands."""
    before = GOOD.get(file, "")
    found = complaints(tree(tmp_path, {**GOOD, file: before + code + "\n"}))
    assert len(found) == 1
    assert found[0].endswith(problem)
    if "no place" not in problem:
        assert found[0].startswith(f"{file}:{before.count(chr(10)) + 1 + code.count(chr(10))}: ")


def test_import_scalegrad_loads_torch_and_nothing_else():
    """What `import scalegrad` adds to `import torch`: itself, and parts of the standard library."""
    code = (
        "import sys, torch\n"
        "before = set(sys.modules)\n"
        "import scalegrad\n"
        "added = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(added - set(sys.stdlib_module_names) - {'torch'}))\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith('torch._dynamo')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    added, compiler = done.stdout.split("\n")[:2]
    assert added == "scalegrad"  # no numpy, triton, transformers, cyclopts, … unless torch itself brings them
    assert compiler == ""  # nor torch's compiler, which takes longer to load than everything else together
