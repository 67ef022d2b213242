"""The losses on a GPU beside every plain cross-entropy people use: `python -m benchmarks gpu`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch

from benchmarks.cases import Case, full_cases, tiny_cases
from benchmarks.ceilings import Ceilings, measure_ceilings
from benchmarks.clock import Clock, CpuClock, CudaClock
from benchmarks.losses import IMPLS, Settings, measure_case
from benchmarks.options import check_counts
from benchmarks.record import Line, about, default_path, figure, lines, print_table, save, say_progress
from benchmarks.requirements import Verdict, print_verdicts, verdicts
from benchmarks.runner import Row, Skipped, reason
from benchmarks.step import NAMES, measure_step
from scalegrad.counts import counted
from scalegrad.options import FLAT

GROUPS = ("logits", "linear", "ul", "packed", "step", "long", "sweep")


def measure(case: Case, settings: Settings, clock: Clock, ceilings: Ceilings) -> list[Row]:
    """One case; whatever goes wrong with its data is said in its rows."""
    try:
        clock.settle()
        if case.group == "step":
            return measure_step(case, settings, clock)
        return measure_case(case, settings, clock, ceilings)
    except Exception as failure:  # the other cases go on
        return [Skipped(name, f"the case failed: {reason(failure)}") for name in case.losses or NAMES]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `python -m benchmarks gpu` can be told."""

    only: tuple[str, ...] = ()
    """Measure this group of cases alone: logits, linear, ul, packed, step, long or sweep. May be repeated."""
    quick: bool = False
    """Few rounds, and nothing that only the plots need."""
    tiny: bool = False
    """Tiny sizes, on a CPU if need be: tries the benchmark."""
    impl: str = "triton"
    """Implementation of our losses: triton, or torch (sparse and chunked)."""
    rounds: int | None = None
    """How often each is timed (default: 20)."""
    out: Path | None = None
    """Where the CSV goes (default: benchmarks/gpu-NAME.csv)."""
    json: bool = False
    """Print JSON in place of tables."""

    def __post_init__(self) -> None:
        check_counts(self, rounds=1)
        for name, values, allowed in (("only", self.only, GROUPS), ("impl", (self.impl,), IMPLS)):
            if other := [value for value in values if value not in allowed]:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {other[0]!r}")


_OPTIONS = Options()


def command(options: Annotated[Options, FLAT] = _OPTIONS) -> None:
    """The losses on a GPU beside every plain cross-entropy people use, and what they must show.

    Example: python -m benchmarks gpu --only logits --only linear
    """
    clock: Clock
    if torch.cuda.is_available():
        clock = CudaClock()
    elif options.tiny:
        clock = CpuClock()
    else:
        raise ValueError("there is no CUDA device here; --tiny tries the benchmark itself on a CPU")
    on_gpu = clock.device == "cuda"
    settings = Settings(options.impl, inplace=True, rounds=options.rounds or (5 if options.quick else 20), patience=2.0)
    cases = tiny_cases() if options.tiny else full_cases(options.quick)
    cases = [case for case in cases if not options.only or case.group in options.only]
    size = {"elements": 2**31, "side": 8192} if on_gpu and not options.tiny else {"elements": 2**22, "side": 512}
    ceilings = measure_ceilings(clock, torch.bfloat16 if on_gpu else torch.float32, **size)
    facts = about(clock.device) | {
        "ours": options.impl,
        "copy_tb_per_s": f"{ceilings.bytes_per_second / 1e12:.4g}",
        "matmul_tflop_per_s": f"{ceilings.flops_per_second / 1e12:.4g}",
    }
    if not options.json:
        _print_head(facts, settings)
    out = options.out or _default_path(str(facts["hardware"]), options)
    results: list[tuple[Case, list[Row]]] = []
    start = time.perf_counter()
    for done, case in enumerate(cases):
        say_progress(done, len(cases), case.title)
        results.append((case, measure(case, settings, clock, ceilings)))
        if not options.json:
            print_table(case.title, results[-1][1])
        save(out, lines((c.columns(), rows) for c, rows in results), facts)  # what is measured survives a crash
    if not options.json:
        tiny = "; the sizes are tiny, so what follows only shows that the list works" if options.tiny else ""
        print(f"{time.perf_counter() - start:.0f} s{tiny}")
    _finish(results, facts, out, as_json=options.json, whole=not options.only)


def _default_path(name: str, options: Options) -> Path:
    """Named after the device; a run of a part has a name of its own and never replaces a whole one."""
    parts = ["gpu", name, *(options.only)]
    parts += [option for option in ("quick", "tiny") if getattr(options, option)]
    parts += [options.impl] if options.impl != "triton" else []
    return default_path(*parts)


def _print_head(facts: Line, settings: Settings) -> None:
    packages = ("torch", "triton", "liger-kernel", "cut-cross-entropy")
    said = ", ".join(f"{name} {facts[name] or 'absent'}" for name in packages)
    print(f"{facts['hardware']}, {said}; ours: {facts['ours']}")
    print(
        f"forward + backward, median of up to {counted(settings.rounds, 'interleaved round')}; ± half the quartile "
        f"distance; floor: at {facts['copy_tb_per_s']} TB/s and {facts['matmul_tflop_per_s']} TFLOP/s; error: of its "
        "bound, and above 1 the gradients are others"
    )


def _finish(results: Sequence[tuple[Case, list[Row]]], facts: Line, out: Path, *, as_json: bool, whole: bool) -> None:
    table: list[Verdict] = verdicts(results)
    kept: list[Line] = [
        {"requirement": v.name, "measured": figure(v.measured), "bound": v.bound, "verdict": v.verdict} for v in table
    ]
    beside = out.with_name(f"{out.stem}-requirements.csv")
    save(beside, kept, facts)
    if as_json:
        rows = lines((case.columns(), rows) for case, rows in results)
        print(json.dumps({"about": facts, "rows": rows, "requirements": kept}, indent=2, ensure_ascii=False))
        return
    print_verdicts(table, whole=whole)
    print(f"stored in {out} and {beside}")
