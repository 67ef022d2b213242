"""What the losses must show on an H200: each requirement, what was measured, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.cases import Case
from benchmarks.peers import FILTERED
from benchmarks.runner import Measurement, Row, ratio

Results = Sequence[tuple[Case, Sequence[Row]]]


@dataclass(frozen=True)
class Verdict:
    """One requirement after a run."""

    name: str
    measured: float | None  # None: something it needs was not measured
    bound: float

    @property
    def verdict(self) -> str:
        """ "ok", "MISS", or "not measured"."""
        if self.measured is None:
            return "not measured"
        return "ok" if self.measured <= self.bound else "MISS"


class Found:
    """What was measured, by case and implementation."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def row(self, key: str, name: str) -> Measurement | None:
        for case, rows in self._results:
            for row in rows:
                if case.key == key and row.name == name and isinstance(row, Measurement):
                    return row
        return None

    def ms(self, key: str, name: str) -> float | None:
        row = self.row(key, name)
        return None if row is None else row.seconds * 1e3

    def time(self, key: str, name: str, over: str) -> float | None:
        """One implementation's time over another's, in the same case."""
        return ratio(self.ms(key, name), self.ms(key, over))

    def memory(self, key: str, name: str) -> int | None:
        row = self.row(key, name)
        return None if row is None else row.extra_bytes

    def floor(self, key: str, name: str) -> float | None:
        row = self.row(key, name)
        return None if row is None else row.floor_ratio

    def case(self, key: str) -> Case | None:
        return next((case for case, _ in self._results if case.key == key), None)

    def of_logits(self, key: str, name: str) -> float | None:
        """Extra memory over the bytes of the logits."""
        case = self.case(key)
        return None if case is None else ratio(self.memory(key, name), case.logits_bytes)

    def of_gradients(self, key: str, name: str) -> float | None:
        """Extra memory over the bytes of the gradients."""
        case = self.case(key)
        return None if case is None else ratio(self.memory(key, name), case.gradient_bytes)

    def span(self, keys: Sequence[str], name: str) -> float | None:
        """The slowest case over the fastest."""
        times = [self.ms(key, name) for key in keys]
        known = [t for t in times if t is not None]
        return max(known) / min(known) if known and len(known) == len(times) else None

    def keys(self, group: str) -> list[str]:
        return [case.key for case, _ in self._results if case.group == group]

    def errors(self) -> float | None:
        """The largest error of ours over its bound, of those that got a speed and of those that did not."""
        ours = [row.error for _, rows in self._results for row in rows if row.name.endswith("scalegrad")]
        known = [error for error in ours if error is not None]
        return max(known, key=lambda error: (math.isnan(error), error)) if known else None


CE, SG, UL = "CE scalegrad", "SG scalegrad", "UL scalegrad"
Rule = tuple[str, Callable[[Found], float | None], float]

RULES: tuple[Rule, ...] = (
    ("logits, V 50257: CE, ms", lambda f: f.ms("logits small", CE), 0.85),
    ("logits, V 128256: CE, ms", lambda f: f.ms("logits large", CE), 1.55),
    ("logits, V 50257: SG / CE", lambda f: f.time("logits small", SG, CE), 1.10),
    ("logits, V 128256: SG / CE", lambda f: f.time("logits large", SG, CE), 1.10),
    ("logits, V 50257: SG / Liger's CE", lambda f: f.time("logits small", SG, "CE Liger"), 0.55),
    ("logits, V 50257: SG / compiled CE", lambda f: f.time("logits small", SG, "CE torch compiled"), 0.65),
    ("logits, V 128256: SG / Liger's CE", lambda f: f.time("logits large", SG, "CE Liger"), 0.70),
    ("logits, V 50257: extra memory of SG / logits", lambda f: f.of_logits("logits small", SG), 0.01),
    ("logits, V 128256: extra memory of SG / logits", lambda f: f.of_logits("logits large", SG), 0.01),
    ("hidden, V 50257: SG / compiled CE", lambda f: f.time("linear small", SG, "CE torch compiled"), 1.0),
    (
        "hidden, V 50257: memory of SG / of compiled CE",
        lambda f: ratio(f.memory("linear small", SG), f.memory("linear small", "CE torch compiled")),
        0.35,
    ),
    ("hidden, V 128256: SG / three-product floor", lambda f: f.floor("linear large", SG), 1.30),
    # With its defaults, which skip work and so are its fastest: told to skip nothing it sums its gradients in bfloat16
    # all the same, errs beyond what a peer may, and has no speed here.
    ("hidden, V 128256: SG / cut-cross-entropy's default", lambda f: f.time("linear large", SG, FILTERED), 0.90),
    ("hidden, V 128256: extra memory of SG / gradients", lambda f: f.of_gradients("linear large", SG), 1.5),
    ("hidden, V 50257: SG / CE", lambda f: f.time("linear small", SG, CE), 1.02),
    ("hidden, V 128256: SG / CE", lambda f: f.time("linear large", SG, CE), 1.02),
    ("N 131072, T 1k to 128k: SG, slowest / fastest", lambda f: f.span(f.keys("long"), SG), 1.15),
    ("8 and 400 documents: SG, slower / faster", lambda f: f.span(["packed 8", "packed 400"], SG), 1.2),
    ("8 documents: extra memory of SG / logits", lambda f: f.of_logits("packed 8", SG), 0.02),
    ("400 documents: extra memory of SG / logits", lambda f: f.of_logits("packed 400", SG), 0.02),
    ("training step: SG / CE", lambda f: f.time("step", SG, CE), 1.01),
    ("training step: SG / framework's own loss", lambda f: f.time("step", SG, "CE framework"), 1.0),
    ("logits, V 50257: UL / SG", lambda f: f.time("ul logits", UL, SG), 1.5),
    ("hidden, V 50257: UL / SG", lambda f: f.time("ul linear", UL, SG), 1.5),
    ("errors against float64 / their bounds", Found.errors, 1.0),
)


def verdicts(results: Results) -> list[Verdict]:
    """Every requirement, in order."""
    found = Found(results)
    return [Verdict(name, measure(found), bound) for name, measure, bound in RULES]


def print_verdicts(table: Sequence[Verdict], *, whole: bool) -> None:
    """One line each, and a count; after a run of a part, only what it measured."""
    width = max(len(v.name) for v in table)
    print(f"\n{'must show (H200, bf16)':{width}}  {'measured':>8}  {'bound':>7}")
    for v in table:
        if whole or v.measured is not None:
            measured = "–" if v.measured is None else f"{v.measured:.3f}"
            print(f"{v.name:{width}}  {measured:>8}  ≤ {v.bound:5.2f}  {v.verdict}")
    kinds = [v.verdict for v in table]
    print(f"{kinds.count('ok')} ok, {kinds.count('MISS')} missed, {kinds.count('not measured')} not measured")
