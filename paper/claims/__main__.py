"""`python -m paper.claims`: hold the claims against the stored results and write the page."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from paper.claims import illustrations, judge_all, page, read_claims, read_results, read_settings
from scalegrad._counts import counted
from scalegrad.runs.atomic import write_text


def main(argv: list[str] | None = None) -> None:
    """Write FOLDER/claims.md; what the user must put right ends with exit code 2 and one sentence."""
    parser = argparse.ArgumentParser(prog="python -m paper.claims", description=__doc__)
    parser.add_argument("folder", nargs="?", default="docs/results", help="where the results are (docs/results)")
    parser.add_argument("--claims", metavar="FILE", help="the claims (FOLDER/claims.toml)")
    args = parser.parse_args(argv)
    folder = Path(args.folder)
    claims = Path(args.claims or folder / "claims.toml")
    try:
        results = read_results(folder) | illustrations()
        verdicts = judge_all(read_claims(claims), results)
        link = Path(os.path.relpath(claims, folder)).as_posix()
        write_text(folder / "claims.md", page(verdicts, read_settings(claims), link))
    except (ValueError, OSError) as mistake:
        print(f"paper.claims: {mistake}", file=sys.stderr)
        sys.exit(2)
    counts = Counter(verdict.word for verdict in verdicts)
    print(
        f"{folder / 'claims.md'}: {counted(len(verdicts), 'claim')}, "
        + ", ".join(f"{n} {word}" for word, n in counts.items())
    )


if __name__ == "__main__":
    main()
