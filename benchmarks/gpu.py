"""The losses on a GPU beside every plain cross-entropy people use: `python -m benchmarks gpu`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.cases import Case, full_cases, tiny_cases
from benchmarks.ceilings import Ceilings, measure_ceilings
from benchmarks.clock import Clock, CpuClock, CudaClock
from benchmarks.losses import IMPLS, Settings, measure_case
from benchmarks.options import at_least
from benchmarks.record import Line, about, default_path, figure, lines, print_table, save, say_progress
from benchmarks.requirements import Verdict, print_verdicts, verdicts
from benchmarks.runner import Row, Skipped, reason
from benchmarks.step import NAMES, measure_step
from scalegrad.counts import counted

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


def main(argv: list[str]) -> None:
    """Print the tables and what must hold, and store both."""
    args = _parser().parse_args(argv)
    clock: Clock
    if torch.cuda.is_available():
        clock = CudaClock()
    elif args.tiny:
        clock = CpuClock()
    else:
        raise ValueError("there is no CUDA device here; --tiny tries the benchmark itself on a CPU")
    on_gpu = clock.device == "cuda"
    settings = Settings(args.impl, inplace=True, rounds=args.rounds or (5 if args.quick else 20), patience=2.0)
    cases = tiny_cases() if args.tiny else full_cases(args.quick)
    cases = [case for case in cases if not args.only or case.group in args.only]
    size = {"elements": 2**31, "side": 8192} if on_gpu and not args.tiny else {"elements": 2**22, "side": 512}
    ceilings = measure_ceilings(clock, torch.bfloat16 if on_gpu else torch.float32, **size)
    facts = about(clock.device) | {
        "ours": args.impl,
        "copy_tb_per_s": f"{ceilings.bytes_per_second / 1e12:.4g}",
        "matmul_tflop_per_s": f"{ceilings.flops_per_second / 1e12:.4g}",
    }
    if not args.json:
        _print_head(facts, settings)
    out = args.out or _default_path(str(facts["hardware"]), args)
    results: list[tuple[Case, list[Row]]] = []
    start = time.perf_counter()
    for done, case in enumerate(cases):
        say_progress(done, len(cases), case.title)
        results.append((case, measure(case, settings, clock, ceilings)))
        if not args.json:
            print_table(case.title, results[-1][1])
        save(out, lines((c.columns(), rows) for c, rows in results), facts)  # what is measured survives a crash
    if not args.json:
        tiny = "; the sizes are tiny, so what follows only shows that the list works" if args.tiny else ""
        print(f"{time.perf_counter() - start:.0f} s{tiny}")
    _finish(results, facts, out, as_json=args.json, whole=not args.only)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gpu",
        description=__doc__,
        epilog="example: python -m benchmarks gpu --only logits linear",
    )
    groups = f"measure these groups of cases alone: {', '.join(GROUPS)}"
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", help=groups)
    parser.add_argument("--quick", action="store_true", help="few rounds, and nothing that only the plots need")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, on a CPU if need be: tries the benchmark")
    parser.add_argument("--impl", choices=IMPLS, default="triton", help="of our losses; torch: sparse and chunked")
    parser.add_argument("--rounds", type=at_least(1), help="how often each is timed (default 20)")
    parser.add_argument("--out", type=Path, help="where the CSV goes (default benchmarks/gpu-NAME.csv)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser


def _default_path(name: str, args: argparse.Namespace) -> Path:
    """Named after the device; a run of a part has a name of its own and never replaces a whole one."""
    parts = ["gpu", name, *(args.only or ())]
    parts += [option for option in ("quick", "tiny") if getattr(args, option)]
    parts += [args.impl] if args.impl != "triton" else []
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


if __name__ == "__main__":
    main(sys.argv[1:])
