"""Floors, bytes and data of the cases, by hand and against the published figures of the machine."""

import math

import pytest
import torch

from benchmarks.cases import Case, full_cases, make_batch, tiny_cases
from benchmarks.ceilings import Ceilings, measure_ceilings
from benchmarks.clock import CpuClock

H200 = Ceilings(bytes_per_second=4.2e12, flops_per_second=790e12)


@pytest.mark.parametrize(
    ("key", "milliseconds"),
    [("logits small", 0.392), ("logits large", 1.001), ("linear small", 3.202), ("linear large", 32.69)],
)
def test_floors_on_an_h200(key, milliseconds):
    case = next(case for case in full_cases() if case.key == key)
    assert case.floor(H200) * 1e3 == pytest.approx(milliseconds, rel=1e-3)


def test_floor_by_hand():
    logits = Case("k", "logits", 2, 3, 5)  # 30 numbers of 2 bytes, read and written
    assert logits.floor(Ceilings(12.0, 1.0)) == 10.0
    linear = Case("k", "linear", 2, 3, 5, 7)  # 3 products of 2 · 6 · 5 · 7
    assert linear.floor(Ceilings(1.0, 126.0)) == 10.0
    assert Case("k", "step", 2, 3, 5, 7).floor(H200) is None


def test_bytes_of_logits_and_gradients():
    small, large = (next(c for c in full_cases() if c.key == key) for key in ("linear small", "linear large"))
    assert small.logits_bytes == 8192 * 50257 * 2
    assert small.gradient_bytes == (8192 + 50257) * 1024 * 2  # 114 MiB, which cut-cross-entropy is seen to take
    assert large.gradient_bytes / 2**20 == pytest.approx(1066, abs=0.5)


def test_every_long_case_has_as_many_tokens():
    assert {case.tokens for case in full_cases() if case.group == "long"} == {131072}
    assert [case.steps for case in full_cases(quick=True) if case.group == "long"] == [1024, 131072]


def test_tiny_cases_are_the_same_list():
    assert [case.key for case in tiny_cases()] == [case.key for case in full_cases()]
    assert max(case.tokens * case.vocab for case in tiny_cases()) < 1e6


def test_tokens_are_as_uneven_as_said():
    batch = make_batch(Case("k", "linear", 8, 1024, 50_257, 4), "cpu")
    distinct = [len(row.unique()) for row in batch.targets]
    assert 550 < sum(distinct) / 8 < 650
    # The first token has a share of ln 2 / ln(V + 1), the second of ln 1.5 / ln(V + 1).
    share = (batch.targets == 0).float().mean()
    assert float(share) == pytest.approx(math.log(2) / math.log(50_258), abs=0.01)


def test_predictions_follow_the_frequencies():
    logits = make_batch(Case("k", "logits", 4, 128, 1000, dtype=torch.float32), "cpu").inputs[0]
    found = logits.flatten(0, 1).mean(0)
    expected = -torch.arange(1, 1001).log()
    assert (found - expected).abs().mean() < 0.15  # noise of 2, averaged over 512
    hidden, weight = make_batch(Case("k", "linear", 4, 128, 1000, 64, dtype=torch.float32), "cpu").inputs
    noise = hidden @ weight.T - expected
    assert float(noise.std()) == pytest.approx(2.0, rel=0.05)


def test_documents_are_of_equal_length():
    segments = make_batch(Case("k", "packed", 1, 8192, 50, documents=400), "cpu").segments
    lengths = segments[0].unique(return_counts=True)[1]
    assert (len(lengths), int(lengths.min()), int(lengths.max())) == (400, 20, 21)


def test_ceilings_count_bytes_read_and_written_and_two_operations_a_product():
    class Fixed(CpuClock):
        def seconds(self, contender):
            return {"copy": 0.5, "product": 0.25}[contender.name]

    found = measure_ceilings(Fixed(), torch.float32, elements=1000, side=10)
    assert found == Ceilings(bytes_per_second=2 * 4000 / 0.5, flops_per_second=2 * 10**3 / 0.25)
