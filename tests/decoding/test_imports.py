"""What importing the package brings along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scalegrad import decoding


def test_importing_decoding_needs_torch_alone() -> None:
    source = str(Path(decoding.__file__).parents[2])
    code = (
        f"import sys; sys.path.insert(0, {source!r}); from scalegrad import decoding; decoding.parse('top_p=0.9'); "
        "print([name for name in ('transformers', 'cyclopts', 'rich', 'tokenizers') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
