"""The figures that README and docs/results/speed.md print are those of the stored H200 run."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS, LIGER, COMPILED, EAGER = "SG scalegrad", "CE Liger", "CE torch compiled", "CE torch eager"


def stored() -> dict[tuple[str, str], dict[str, str]]:
    with (ROOT / "benchmarks" / "gpu-nvidia-h200.csv").open() as file:
        return {(row["key"], row["implementation"]): row for row in csv.DictReader(file)}


def ms(key: str, implementation: str) -> str:
    """Three digits, as the tables write them: .562, 1.38, 39.0, 104."""
    value = float(stored()[key, implementation]["ms"])
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1}f}".removeprefix("0")


def mib(key: str, implementation: str) -> str:
    return f"{float(stored()[key, implementation]['extra_mib']):,.0f}"


def plain(path: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / path).read_text().replace("**", ""))


def test_the_page_on_speed() -> None:
    page = plain("docs/results/speed.md")
    both = ("small", "large")
    rows = [
        " | ".join(f"{ms(f'logits {size}', OURS)} ms, < 1 MiB" for size in both),
        " | ".join(f"{ms(f'logits {size}', 'CE scalegrad')} ms" for size in both),
        " | ".join(
            " / ".join(ms(f"logits {size}", name) for name in (LIGER, COMPILED, EAGER)) + " ms" for size in both
        ),
        " | ".join(
            f"{float(ms(f'logits {size}', 'SG dense')):.0f} ms, {mib(f'logits {size}', 'SG dense')} MiB"
            for size in both
        ),
        *(
            " | ".join(f"{ms(f'linear {size}', name)} ms, {mib(f'linear {size}', name)} MiB" for size in both)
            for name in (OURS, COMPILED)
        ),
        f"{ms('step', OURS)} ms with ScaleGrad, {ms('step', 'CE scalegrad')} with our cross-entropy, "
        f"{ms('step', 'CE framework')} with the framework's own loss",
    ]
    assert [row for row in rows if row not in page] == []
    assert all(float(stored()[f"logits {size}", OURS]["extra_mib"]) < 1 for size in both)


def test_the_readme() -> None:
    three = [ms("logits small", name) for name in (LIGER, COMPILED, EAGER)]
    said = "take {} ms at V = 50,257, where plain cross-entropy takes {} ms (Liger), {} (torch compiled) or {} (torch"
    assert said.format(f"{float(ms('logits small', OURS)):.2f}".removeprefix("0"), *three) in plain("README.md")
