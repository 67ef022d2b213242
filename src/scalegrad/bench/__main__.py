"""`python -m scalegrad.bench cpu`: run one benchmark by name; `--help` after the name lists its options."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from scalegrad import bench


def main(argv: list[str]) -> None:
    """The name picks a module of this package that has a `main(argv)`."""
    found = [m.name for m in pkgutil.iter_modules(bench.__path__)]
    names = [n for n in found if n != "__main__" and hasattr(importlib.import_module(f"{bench.__name__}.{n}"), "main")]
    if not argv or argv[0] not in names:
        print(f"python -m scalegrad.bench NAME, where NAME is one of: {', '.join(names)}", file=sys.stderr)
        sys.exit(2)
    importlib.import_module(f"{bench.__name__}.{argv[0]}").main(argv[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
