"""Contenders compute what they are named after; logits are fresh for every run and never a contender's to keep."""

import pytest
import torch

from benchmarks import losses, peers
from benchmarks.cases import Case, make_batch
from benchmarks.ceilings import Ceilings
from benchmarks.clock import CpuClock
from benchmarks.exact import errors, exact_answers
from benchmarks.losses import Settings, measure_case
from benchmarks.runner import Measurement, Skipped, Unavailable, WrongResult

TORCH = Settings("torch", inplace=True, rounds=2, patience=1e9)
CEILINGS = Ceilings(1e9, 1e9)
GPU_ONLY = ("CE Liger", "CE cut-cross-entropy", peers.FILTERED)


def run(name, loss, batch):
    contender = losses._contender(name, loss, batch, losses._fresh_inputs(batch))
    return contender, contender.run(*contender.prepare())


@pytest.mark.parametrize("linear", [False, True])
def test_every_loss_is_right_in_float64(linear):
    batch = make_batch(Case("k", "g", 2, 40, 60, 8 if linear else 0), "cpu")
    batch = type(batch)(tuple(x.double() for x in batch.inputs), batch.targets, batch.segments)
    answers = exact_answers(batch, ("CE", "SG", "UL"))
    known = (peers.LINEAR if linear else peers.LOGITS) | losses.our_losses(linear, TORCH)
    checked = 0
    for name, loss in known.items():
        if name in GPU_ONLY or name == "CE torch compiled":
            continue
        if name == "CE F.linear_cross_entropy" and not hasattr(torch.nn.functional, "linear_cross_entropy"):
            continue
        found = errors(run(name, loss, batch)[1], answers, name[:2], torch.float64)
        assert max(value for key, value in found.items() if "ulps" not in key) < 1e-10, name
        checked += 1
    assert checked >= 4


def test_packages_that_need_a_gpu_or_are_absent_say_so():
    batch = make_batch(Case("k", "g", 1, 4, 8), "cpu")
    with pytest.raises(Unavailable, match=r"liger-kernel (is not installed|needs a CUDA device)"):
        peers.liger_cross_entropy(*batch.inputs, batch)
    batch = make_batch(Case("k", "g", 1, 4, 8, 4), "cpu")
    with pytest.raises(Unavailable, match=r"cut-cross-entropy (is not installed|needs .*)"):
        peers.cut_cross_entropy(*batch.inputs, batch)


def test_what_gives_other_gradients_by_design_is_told_not_judged():
    case = Case("k", "g", 2, 10, 30, 4, losses=("CE torch eager",), dtype=torch.float32)
    batch = make_batch(case, "cpu")
    plain, outcome = run("plain", peers.linear_cross_entropy, batch)
    check = losses._checker(case, batch, plain)
    halved = outcome._replace(grads=tuple(g / 2 for g in outcome.grads))
    assert check(peers.FILTERED, halved) == pytest.approx(5.0, rel=1e-3)  # half is gone, a tenth may be
    with pytest.raises(WrongResult):
        check("CE cut-cross-entropy", halved)


def test_in_place_takes_the_memory_and_the_next_run_has_the_logits_back():
    batch = make_batch(Case("k", "g", 2, 10, 30), "cpu")
    before = batch.inputs[0].clone()
    contender, first = run("SG scalegrad", losses.our_losses(False, TORCH)["SG scalegrad"], batch)
    (logits,) = contender.prepare()
    second = contender.run(logits)
    assert second.grads[0].data_ptr() == logits.data_ptr()
    assert torch.equal(batch.inputs[0], before)
    assert torch.equal(first.loss, second.loss)
    assert torch.equal(contender.prepare()[0].detach(), before)


def test_a_case_is_measured_whole():
    names = ("CE torch eager", "CE Liger", "SG scalegrad", "UL scalegrad", "SG dense")
    case = Case("k", "logits", 2, 50, 90, losses=names)
    rows = measure_case(case, TORCH, CpuClock(), CEILINGS)
    assert [row.name for row in rows] == list(names)
    assert isinstance(rows[1], Skipped)
    for row in (rows[0], *rows[2:]):
        assert isinstance(row, Measurement)
        assert row.floor_ratio == pytest.approx(row.seconds / (2 * 100 * 90 * 2 / 1e9))
        assert 0 <= row.error <= 1


def test_a_wrong_loss_of_ours_has_no_speed(monkeypatch):
    def wrong(linear, settings):
        right = losses_of(linear, settings)
        return right | {"SG scalegrad": right["CE scalegrad"]}

    losses_of = losses.our_losses
    monkeypatch.setattr(losses, "our_losses", wrong)
    case = Case("k", "linear", 2, 100, 200, 16, losses=("CE scalegrad", "SG scalegrad"))
    right, red = measure_case(case, TORCH, CpuClock(), CEILINGS)
    assert isinstance(right, Measurement)
    assert isinstance(red, Skipped)
    assert red.reason.startswith("wrong: ")
    assert red.error > 1
