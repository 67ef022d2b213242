"""`python -m benchmarks cpu`: run one benchmark by name; `--help` after the name lists its options."""

from __future__ import annotations

import importlib
import sys

from benchmarks import BENCHMARKS
from scalegrad.extras import MissingExtra


def run(name: str, argv: list[str]) -> None:
    """Run the benchmark `name` with these arguments."""
    importlib.import_module(f"benchmarks.{name}").main(argv)


def main(argv: list[str]) -> None:
    """What the user must put right ends with exit code 2 and one sentence."""
    if not argv or argv[0] not in BENCHMARKS:
        print(f"python -m benchmarks NAME, where NAME is one of: {', '.join(BENCHMARKS)}", file=sys.stderr)
        sys.exit(2)
    try:
        run(argv[0], argv[1:])
    except (ValueError, OSError, MissingExtra) as mistake:
        print(f"benchmarks: {mistake}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
