"""Each requirement reads the figure it names, from a table made up by hand."""

import pytest

from benchmarks.cases import Case, full_cases
from benchmarks.requirements import Verdict, print_verdicts, verdicts
from benchmarks.runner import Measurement, Skipped


def measured(name, ms, mib=0.0, floor=None, error=0.5):
    return Measurement(name, ms / 1e3, 0.01, int(mib * 2**20), None, None, floor, error)


def case(key) -> Case:
    return next(c for c in full_cases() if c.key == key)


TABLE = {
    "logits small": [
        measured("CE torch compiled", 1.6, 785),
        measured("CE Liger", 2.0),
        measured("CE scalegrad", 0.8),
        measured("SG scalegrad", 0.88, case("logits small").logits_bytes / 2**20 / 200),
    ],
    "logits large": [
        Skipped("CE Liger", "not installed"),
        measured("CE scalegrad", 1.6),
        measured("SG scalegrad", 1.6),
    ],
    "linear small": [
        measured("CE torch compiled", 5.0, 1000),
        measured("CE scalegrad", 4.0),
        measured("SG scalegrad", 4.5, 300),
    ],
    "linear large": [
        measured("CE cut-cross-entropy (filters)", 50.0),
        measured("SG scalegrad", 40.0, 2 * case("linear large").gradient_bytes / 2**20, floor=1.25),
    ],
    "ul logits": [measured("SG scalegrad", 1.0), measured("UL scalegrad", 1.4, error=0.75)],
    "packed 8": [measured("SG scalegrad", 1.0)],
    "packed 400": [measured("SG scalegrad", 1.3)],
    "long 1k": [measured("SG scalegrad", 15.0)],
    "long 128k": [measured("SG scalegrad", 16.5)],
    "step": [measured("CE framework", 50), measured("CE scalegrad", 40), measured("SG scalegrad", 41)],
}

EXPECTED = {
    "logits, V 50257: CE, ms": (0.8, "ok"),
    "logits, V 128256: CE, ms": (1.6, "MISS"),
    "logits, V 50257: SG / CE": (1.1, "ok"),
    "logits, V 128256: SG / CE": (1.0, "ok"),
    "logits, V 50257: SG / Liger's CE": (0.44, "ok"),
    "logits, V 50257: SG / compiled CE": (0.55, "ok"),
    "logits, V 128256: SG / Liger's CE": (None, "not measured"),
    "logits, V 50257: extra memory of SG / logits": (0.005, "ok"),
    "logits, V 128256: extra memory of SG / logits": (0.0, "ok"),
    "hidden, V 50257: SG / compiled CE": (0.9, "ok"),
    "hidden, V 50257: memory of SG / of compiled CE": (0.3, "ok"),
    "hidden, V 128256: SG / three-product floor": (1.25, "ok"),
    "hidden, V 128256: SG / cut-cross-entropy's default": (0.8, "ok"),
    "hidden, V 128256: extra memory of SG / gradients": (2.0, "MISS"),
    "hidden, V 50257: SG / CE": (1.125, "MISS"),
    "hidden, V 128256: SG / CE": (None, "not measured"),
    "N 131072, T 1k to 128k: SG, slowest / fastest": (1.1, "ok"),
    "8 and 400 documents: SG, slower / faster": (1.3, "MISS"),
    "8 documents: extra memory of SG / logits": (0.0, "ok"),
    "400 documents: extra memory of SG / logits": (0.0, "ok"),
    "training step: SG / CE": (1.025, "MISS"),
    "training step: SG / framework's own loss": (0.82, "ok"),
    "logits, V 50257: UL / SG": (1.4, "ok"),
    "hidden, V 50257: UL / SG": (None, "not measured"),
    "errors against float64 / their bounds": (0.75, "ok"),
}


def test_every_requirement():
    found = {v.name: v for v in verdicts([(case(key), rows) for key, rows in TABLE.items()])}
    assert list(found) == list(EXPECTED)
    for name, (value, verdict) in EXPECTED.items():
        assert found[name].measured == (None if value is None else pytest.approx(value, rel=1e-5)), name
        assert found[name].verdict == verdict, name


@pytest.mark.parametrize(("error", "verdict"), [(1.5, "MISS"), (float("nan"), "MISS"), (None, "ok")])
def test_a_red_check_is_a_missed_requirement(error, verdict):
    rows = [measured("CE scalegrad", 1.0), Skipped("SG scalegrad", "wrong" if error else "no GPU", error)]
    last = verdicts([(case("logits small"), rows)])[-1]
    assert last.verdict == verdict


def test_a_part_prints_only_what_it_measured(capsys):
    table = [Verdict("a", 1.0, 2.0), Verdict("b", 3.0, 2.0), Verdict("c", None, 2.0)]
    print_verdicts(table, whole=False)
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in out[2:4]] == ["ok", "MISS"]
    assert out[-1] == "1 ok, 1 missed, 1 not measured"
    print_verdicts(table, whole=True)
    assert "not measured" in capsys.readouterr().out.splitlines()[4]
