"""What is stored is what was measured."""

import pytest

from benchmarks.record import about, lines, print_table, read, save
from benchmarks.runner import Measurement, Skipped

ROWS = [
    Measurement("CE torch eager", 0.00164, 0.0123, 2357 * 2**20, 1.0, 1.0, 4.2, 0.5),
    Measurement("SG scalegrad", 0.000821, 0.004, None, 0.500612, None, None, None),
    Skipped("CE Liger", "liger-kernel is not installed"),
    Skipped("UL scalegrad", "wrong: loss nan, bound 0.1", float("nan")),
]


def test_csv_round_trip(tmp_path):
    path = tmp_path / "new" / "gpu.csv"
    save(
        path, lines([({"case": "logits, V 5", "vocab": 5}, ROWS)]), {"date": "2026-11-15", "hardware": "a “GPU”, fast"}
    )
    stored = read(path)
    assert [line["implementation"] for line in stored] == [row.name for row in ROWS]
    assert {(line["date"], line["hardware"], line["case"], line["vocab"]) for line in stored} == {
        ("2026-11-15", "a “GPU”, fast", "logits, V 5", "5")
    }
    numbers = ("ms", "spread", "extra_mib", "time_ratio", "memory_ratio", "floor_ratio", "error")
    assert [float(stored[0][n]) for n in numbers] == [1.64, 0.0123, 2357, 1, 1, 4.2, 0.5]
    assert [stored[1][n] for n in numbers] == ["0.821", "0.004", "", "0.50061", "", "", ""]
    assert [stored[2][n] for n in numbers] == [""] * 7
    assert stored[2]["skipped"] == "liger-kernel is not installed"
    assert stored[3]["error"] == "nan"
    assert [file.name for file in path.parent.iterdir()] == ["gpu.csv"]  # nothing half-written beside it


def test_about_names_hardware_versions_and_date():
    import torch

    facts = about("cpu")
    assert facts["torch"] == torch.__version__
    assert str(facts["date"]).count("-") == 2
    assert "core" in str(facts["hardware"])


def test_a_red_or_absent_one_has_a_reason_and_no_number(capsys):
    print_table("logits", ROWS)
    header, first, second, absent, red = capsys.readouterr().out.splitlines()
    assert header.split() == ["logits", "ms", "±", "time", "MiB", "memory", "floor", "error"]
    assert first.split()[3:] == ["1.640", "1%", "1.00×", "2357", "1.00×", "4.20×", "0.50"]
    assert second.split()[2:] == ["0.821", "0%", "0.50×", "–", "–", "–", "–"]
    assert absent.split("–")[1].strip() == "liger-kernel is not installed"
    assert red.split("–")[1].strip() == "wrong: loss nan, bound 0.1"


@pytest.mark.parametrize("row", ROWS)
def test_lines_have_the_same_columns(row):
    assert list(lines([({}, [row])])[0]) == list(lines([({}, ROWS)])[0])
