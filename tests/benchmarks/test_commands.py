"""The benchmarks run to the end on any machine, store what they print, and draw from what they stored."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks import BENCHMARKS, cases, gpu, losses, plot
from benchmarks.__main__ import main
from benchmarks.ceilings import Ceilings
from benchmarks.record import lines, read, save
from benchmarks.runner import Measurement


def test_every_benchmark_has_a_main():
    for name in BENCHMARKS:
        with pytest.raises(SystemExit) as stop:
            main([name, "--help"])
        assert stop.value.code == 0


@pytest.mark.parametrize(
    ("name", "option", "value", "said"),
    [
        *(
            (name, "--rounds", "0", "a whole number of at least 1")
            for name in ("cpu", "gpu", "metrics", "throughput", "decoding")
        ),
        ("cpu", "--vocab", "1", "a whole number of at least 2"),
        ("throughput", "--batch", "0", "a whole number of at least 1"),
        ("throughput", "--length", "1", "a whole number of at least 2"),
        ("throughput", "--vocab", "0", "a whole number of at least 2"),
        ("throughput", "--width", "0", "a whole number of at least 1"),
    ],
)
def test_counts_of_nothing_are_refused_before_anything_runs(name, option, value, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main([name, option, value])
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert told.err == f"benchmarks: {option} must be {said}, not {value}\n"
    assert told.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


needs_no_gpu = pytest.mark.skipif(
    torch.cuda.is_available(), reason="this machine has a GPU, which the benchmark would use in place of the CPU"
)


@needs_no_gpu
def test_gpu_tiny_as_json(tmp_path, capsys, one_thread):
    out = tmp_path / "gpu.csv"
    gpu.command(gpu.Options(tiny=True, impl="torch", only=("packed", "ul"), rounds=2, out=out, json=True))
    told = json.loads(capsys.readouterr().out)
    stored = read(out)
    assert [line["key"] for line in stored] == [
        *["ul logits"] * 2,
        *["ul linear"] * 2,
        *["packed 8"] * 2,
        *["packed 400"] * 2,
    ]
    assert [float(line["ms"]) for line in stored] == [row["ms"] for row in told["rows"]]
    assert {line["ours"] for line in stored} == {"torch"}
    held = {line["requirement"]: line for line in read(tmp_path / "gpu-requirements.csv")}
    name = "8 and 400 documents: SG, slower / faster"
    a, b = (float(line["ms"]) for line in stored[4:] if line["implementation"] == "SG scalegrad")
    assert float(held[name]["measured"]) == pytest.approx(max(a, b) / min(a, b), rel=1e-3)
    assert held["errors against float64 / their bounds"]["verdict"] == "ok"
    assert held["training step: SG / CE"]["verdict"] == "not measured"


@needs_no_gpu
def test_a_loss_that_fails_is_a_line_and_the_rest_goes_on(tmp_path, capsys, monkeypatch, one_thread):
    def one_fails(linear, settings):
        def fail(*arguments):
            raise RuntimeError("an illegal memory access\nwas encountered")

        return our_losses(linear, settings) | {"SG scalegrad": fail}

    our_losses = losses.our_losses
    monkeypatch.setattr(losses, "our_losses", one_fails)
    out = tmp_path / "gpu.csv"
    gpu.command(gpu.Options(tiny=True, impl="torch", only=("packed",), rounds=2, out=out))
    assert [bool(line["ms"]) for line in read(out)] == [True, False, True, False]
    assert capsys.readouterr().out.count("– RuntimeError: an illegal memory access\n") == 2


@needs_no_gpu
def test_a_case_that_breaks_is_said_and_the_rest_goes_on(tmp_path, capsys, monkeypatch, one_thread):
    def broken(case, *rest):
        if case.key == "packed 8":
            raise RuntimeError("no such data")
        return measure_case(case, *rest)

    measure_case = gpu.measure_case
    monkeypatch.setattr(gpu, "measure_case", broken)
    out = tmp_path / "gpu.csv"
    gpu.command(gpu.Options(tiny=True, impl="torch", only=("packed",), rounds=2, out=out))
    stored = read(out)
    assert [line["skipped"] for line in stored] == ["the case failed: RuntimeError: no such data"] * 2 + [""] * 2


@needs_no_gpu
def test_the_training_step(tmp_path, one_thread):
    pytest.importorskip("transformers")
    out = tmp_path / "gpu.csv"
    gpu.command(gpu.Options(tiny=True, impl="torch", only=("step",), rounds=2, out=out))
    stored = read(out)
    assert [line["implementation"] for line in stored] == ["CE framework", "CE scalegrad", "SG scalegrad"]
    assert all(float(line["error"]) <= 1 and float(line["ms"]) > 0 for line in stored)


@needs_no_gpu
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["gpu"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "benchmarks: there is no CUDA device here; --tiny tries the benchmark itself on a CPU\n"
    )


def test_a_part_never_replaces_a_whole_run():
    def path(**options):
        return str(gpu._default_path("NVIDIA H200", gpu.Options(**options)))

    assert path() == "benchmarks/gpu-nvidia-h200.csv"
    assert path(only=("logits", "ul")) == "benchmarks/gpu-nvidia-h200-logits-ul.csv"
    assert path(quick=True) == "benchmarks/gpu-nvidia-h200-quick.csv"
    assert path(impl="torch") == "benchmarks/gpu-nvidia-h200-torch.csv"


def test_cpu(tmp_path, capsys, monkeypatch, one_thread):
    from benchmarks import cpu

    monkeypatch.setattr(cpu, "SHAPES", ((1, 20), (2, 30)))
    monkeypatch.setattr(cpu.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(cpu, "measure_ceilings", lambda *_, **__: Ceilings(1e10, 1e10))
    out = tmp_path / "cpu.csv"
    cpu.command(cpu.Options(rounds=2, vocab=80, out=out))
    stored = read(out)
    assert [(line["case"], line["threads"]) for line in stored[::4]] == [
        ("logits 1×20, V 80, fp32", "1"),
        ("logits 2×30, V 80, fp32", "1"),
    ]
    assert [float(line["time_ratio"]) for line in stored[::4]] == [1, 1]
    assert all(float(line["error"]) <= 1 for line in stored)


def test_pictures_show_what_was_stored(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    results = []
    for case in cases.full_cases():
        if case.group in ("logits", "sweep", "long"):
            row = Measurement("SG scalegrad", case.vocab / 1e8, 0.0, case.vocab * 64, 1.0, 1.0, None, 0.1)
            results.append((case.columns(), [row]))
    about = {"date": "2026-11-15", "hardware": "a GPU", "torch": "2.11"}
    table = tmp_path / "gpu.csv"
    save(table, lines(results), about)
    figure = plot.draw(read(table), *plot.PICTURES["vocabulary"])
    (time,), (memory,) = (axes.get_lines() for axes in figure.axes)
    assert list(time.get_xdata()) == [32_000, 50_257, 64_000, 128_256, 262_144]
    assert list(time.get_ydata()) == pytest.approx([0.32, 0.50257, 0.64, 1.28256, 2.62144], rel=1e-4)
    assert memory.get_ydata()[0] == pytest.approx(32_000 * 64 / 2**20, rel=1e-4)
    with pytest.raises(SystemExit) as end:
        main(["plot", str(table), "--json"])
    assert end.value.code == 0
    made = json.loads(capsys.readouterr().out)
    assert made == [str(tmp_path / "gpu-vocabulary.png"), str(tmp_path / "gpu-length.png")]
    assert all(Path(path).read_bytes().startswith(b"\x89PNG\r\n\x1a\n") for path in made)


def test_a_table_of_something_else_is_refused(tmp_path, capsys):
    table = tmp_path / "other.csv"
    table.write_text("name,ms\na,1\n")
    with pytest.raises(SystemExit) as stop:
        main(["plot", str(table)])
    assert stop.value.code == 2
    assert "it has no column batch, extra_mib, group" in capsys.readouterr().err
