"""`python -m benchmarks cpu`: run one benchmark by name; `--help` after the name lists its options."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks import BENCHMARKS
from scalegrad.cli import new_app, run


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; a mistake of the user's ends in one sentence and exit code 2."""
    words = sys.argv[1:] if argv is None else list(argv)
    app = new_app("python -m benchmarks", "Speed and memory, side by side.\n\nExample: python -m benchmarks cpu")
    for order, (name, what) in enumerate(BENCHMARKS.items()):
        # Its own help needs the module, which loads torch; the list of all does not.
        shown = None if name in words else what
        app.command(f"benchmarks.{name}:command", name=name, sort_key=order, help=shown)
    run(app, words)


if __name__ == "__main__":
    main()
