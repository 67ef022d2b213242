"""A task, the study and each trainer's integration is a folder or a file you can delete: the rest still works.

Deleting is played by an import hook that knows the part no longer. A subprocess then imports every other module and
runs a small core check.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from scalegrad.cli import VERBS

SOURCE = Path(__file__).parents[1] / "src" / "scalegrad"

# Each part with the verbs that go with it; what else is deleted with it, because it is built on it alone.
PARTS = {
    "scalegrad.tasks.open_ended": (
        {"train", "evaluate", "demo", "sweep"},
        tuple(f"scalegrad.{name}" for name in ("lab.jobs", "lab.sweep", "lab.demo", "cli.demo", "cli.sweep")),
    ),
    "scalegrad.tasks.summarization": ({"summarize"}, ()),
    "scalegrad.tasks.captioning": ({"caption"}, ()),
    "scalegrad.study": ({"study"}, ()),
    "scalegrad.integrations.trl": (set(), ()),
}  # fmt: skip

CHECK = """
import importlib, importlib.abc, pkgutil, sys

deleted, gone = sys.argv[1], sys.argv[1:]

class Deleted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == deleted or name.startswith(deleted + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Deleted())
import scalegrad
for module in pkgutil.walk_packages(scalegrad.__path__, "scalegrad.", onerror=lambda name: None):
    inside = any(module.name == name or module.name.startswith(name + ".") for name in gone)
    if not inside and not module.name.endswith("__main__") and ".ops.triton_" not in module.name:
        importlib.import_module(module.name)

import torch
from scalegrad import ScaleGradLoss, metrics
from scalegrad.cli import command

logits, targets = torch.zeros(1, 3, 4), torch.tensor([[0, 1, 0]])
loss = ScaleGradLoss(0.5)(logits, targets)
assert abs(loss.item() - (torch.tensor([4.0, 5.0, 3.0]).log().sum() / 3).item()) < 1e-6, loss
assert abs(metrics.repetition(["a b a b a"])["rep_1"] - 0.6) < 1e-12
print(*sorted(name for name in command() if not name.startswith("-")))
"""


def rest_works(part: str, *, gone: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    """Import and check everything but `part` and what is built on it, in a process that cannot import `part`."""
    return subprocess.run([sys.executable, "-c", CHECK, part, *gone], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("part", PARTS)
def test_the_rest_works_without(part):
    verbs, gone = PARTS[part]
    done = rest_works(part, gone=gone)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(VERBS) - set(done.stdout.split()) == verbs


@pytest.mark.parametrize("part", ["scalegrad.metrics", "scalegrad.training", "scalegrad.integrations.hf"])
def test_the_check_can_fail(part):
    """What others are built on cannot be deleted, and the check says so."""
    done = rest_works(part)
    assert done.returncode != 0
    assert f"No module named '{part}" in done.stderr
