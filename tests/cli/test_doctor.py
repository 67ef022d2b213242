"""`scalegrad doctor` as a user types it."""

import json
import subprocess
import sys

from scalegrad.lab import doctor

ALONE = """
import sys
for name in ("transformers", "tokenizers", "numpy", "accelerate"):
    sys.modules[name] = None  # as if it were not installed
from scalegrad.cli import main
main(["doctor", "--json"])
"""


def test_what_it_prints(command, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, printed, _ = command("doctor")
    assert code == 0
    assert [line for line in printed.splitlines() if line and not line.startswith(" ")] == [
        "This machine", "Installed", "The losses", "Shipped with it", "Nothing is wrong.",
    ]  # fmt: skip


def test_something_wrong_is_the_exit_code(command, monkeypatch):
    wrong = doctor.Finding("losses", "sparse", "wrong", "it errs")
    monkeypatch.setattr(doctor, "findings", lambda: iter([wrong]))
    code, printed, _ = command("doctor")
    assert (code, printed.splitlines()[-1]) == (1, "Wrong: sparse.")
    code, printed, _ = command("doctor", "--json")
    assert code == 1
    assert json.loads(printed) == [{"part": "losses", "name": "sparse", "state": "wrong", "said": "it errs"}]


def test_without_extras_it_says_what_is_missing():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, env=None, check=True)
    found = {(one["part"], one["name"]): one for one in json.loads(done.stdout)}
    assert found["losses", "sparse"]["state"] == "ok"
    assert found["shipped", "model"]["state"] == "absent"
