"""The package as a whole: its public names, and what it needs."""

from __future__ import annotations

import subprocess
import sys

from scalegrad import metrics


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)


def test_public_names_are_all_there_and_sorted() -> None:
    assert sorted(metrics.__all__) == sorted(set(metrics.__all__))
    assert all(getattr(metrics, name).__doc__ for name in metrics.__all__)


def test_optional_packages_load_only_when_used() -> None:
    found = run(
        "import sys, scalegrad.metrics as m; m.repetition(['a b a b']);"
        "print([name for name in ('rouge_score', 'sacrebleu', 'ot', 'transformers') if name in sys.modules])"
    )
    assert found.stdout.strip() == "[]", found.stderr


def test_missing_packages_say_which_extra_brings_them() -> None:
    without_numpy = run("import sys; sys.modules['numpy'] = None; import scalegrad.metrics")
    assert 'numpy is needed here: pip install "scalegrad[measure]"' in without_numpy.stderr
    without_bleu = run(
        "import sys; sys.modules['sacrebleu'] = None; import scalegrad.metrics as m; m.bleu(['a'], ['a'])"
    )
    assert 'sacrebleu is needed here: pip install "scalegrad[measure]"' in without_bleu.stderr
