"""The novelty penalty and n-gram blocking against loops that share no code with them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from scalegrad import decoding
from scalegrad.decoding import History, NgramProcessor, NoveltyProcessor
from scalegrad.decoding.processors import RepetitionPenaltyProcessor

V = 7
IDS = st.lists(st.integers(0, V - 1), min_size=1, max_size=14)


def open_history(
    ids: list[int], padding: int = 0, pad: int = 0, prompt: int | None = None
) -> tuple[History, torch.Tensor]:
    """History and running ids for one row: `prompt` of the ids are the prompt (all by default), left-padded."""
    cut = len(ids) if prompt is None else prompt
    row = torch.tensor([[pad] * padding + ids])
    known = torch.tensor([[-1] * padding + ids[:cut]], dtype=torch.long)
    return History(known, start=padding + cut), row


def scalegrad_rescaled(p: list[float], seen: set[int], gamma: float) -> list[float]:
    """The paper's rescaling: novel probabilities times gamma, then renormalised."""
    scaled = [x if token in seen else gamma * x for token, x in enumerate(p)]
    return [x / sum(scaled) for x in scaled]


@given(IDS, st.floats(0.01, 1.0), st.lists(st.floats(-6, 6, width=32), min_size=V, max_size=V), st.integers(0, 3))
def test_scalegrads_rescaling_undoes_the_novelty_penalty(
    ids: list[int], gamma: float, logits: list[float], padding: int
) -> None:
    history, row = open_history(ids, padding)
    p = NoveltyProcessor(gamma, history)(row, torch.tensor([logits], dtype=torch.float64)).exp()[0].tolist()
    model_p = torch.softmax(torch.tensor(logits, dtype=torch.float64), -1).tolist()
    assert scalegrad_rescaled(p, set(ids), gamma) == pytest.approx(model_p, abs=1e-12)
    if gamma < 0.99 and 0 < len(set(ids)) < V:
        assert sum(p[token] for token in set(ids)) < sum(model_p[token] for token in set(ids))


@pytest.mark.parametrize("strategy", ["greedy,gamma=0.2", "top_p=0.8,gamma=0.2"])
def test_round_trip_at_every_step_of_generate(make_model: Any, any_kind: str, strategy: str) -> None:
    model = make_model(any_kind, seed=4)
    inputs = {"input_ids": torch.tensor([[0, 0, 9, 9, 5]]), "attention_mask": torch.tensor([[0, 0, 1, 1, 1]])}
    causal = not model.config.is_encoder_decoder
    kept_scores: list[torch.Tensor] = []

    def spy(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        kept_scores.append(scores)
        return scores

    arguments = decoding.generation_arguments(model, inputs, strategy, new_tokens=10, min_new_tokens=10)
    arguments["logits_processor"].insert(1, spy)  # right behind the novelty penalty
    out = model.generate(**inputs, **arguments, return_dict_in_generate=True, output_logits=True)
    new = out.sequences[0, (5 if causal else 1) :].tolist()
    assert len(kept_scores) == 10
    for step, (scores, logits) in enumerate(zip(kept_scores, out.logits, strict=True)):
        seen = ({9, 5} if causal else set()) | set(new[:step])
        q = logits[0].double()
        q[1] = -math.inf  # the end symbol is banned until the minimum length
        model_p = torch.softmax(q, -1).tolist()
        p = scores[0].double().exp().tolist()
        assert sum(p) == pytest.approx(1.0, abs=1e-6)
        assert scalegrad_rescaled(p, seen, 0.2) == pytest.approx(model_p, abs=1e-6)


def test_gamma_one_changes_nothing() -> None:
    history, row = open_history([1, 2])
    p = NoveltyProcessor(1.0, history)(row, torch.tensor([[0.0, 1.0, 2.0]]))
    assert p.exp()[0].tolist() == pytest.approx([0.09003057, 0.24472847, 0.66524096])


@pytest.mark.parametrize(
    ("seen", "joined", "expected"),
    [
        ("all", True, {1, 2, 3}),
        ("generated", True, {3}),
        ("prompt", True, {1, 2}),
        ("all", False, {1, 2, 3}),
        ("generated", False, {3}),
        ("prompt", False, {1, 2}),
    ],
)
def test_what_counts_as_seen(seen: Any, joined: bool, expected: set[int]) -> None:
    # Causal: the running ids are pad, 1, 2, then the new 3. Encoder-decoder: the start symbol 0, then the new 3.
    row = torch.tensor([[0, 1, 2, 3]]) if joined else torch.tensor([[0, 3]])
    history = History(torch.tensor([[-1, 1, 2]]), start=3 if joined else 1, joined=joined, seen=seen)
    p = NoveltyProcessor(0.5, history)(row, torch.zeros(1, 5)).exp()[0]
    low = {token for token in range(5) if p[token] < p.max() - 1e-6}
    assert low == expected
    assert p.max() / p.min() == pytest.approx(2.0)


def test_defaults_by_architecture(make_model: Any) -> None:
    inputs = {"input_ids": torch.tensor([[5, 6]])}
    assert History.of(make_model("llama"), inputs).seen == "all"
    assert History.of(make_model("t5"), inputs).seen == "generated"
    assert History.of(make_model("t5"), inputs, "all").seen == "all"


def test_exempt_ids_are_left_alone() -> None:
    history, row = open_history([1, 2])
    p = NoveltyProcessor(0.5, history, exempt=[2])(row, torch.zeros(1, 4)).exp()[0].tolist()
    assert p == pytest.approx([2 / 7, 1 / 7, 2 / 7, 2 / 7])
    with pytest.raises(ValueError, match=r"exempt ids must lie in \[0, 4\), not \[4\]"):
        NoveltyProcessor(0.5, history, exempt=[4])(row, torch.zeros(1, 4))


def occurrences(ids: list[int], n: int, token: int) -> int:
    """How often the n-gram that `token` would complete stands in `ids` already."""
    if len(ids) < n - 1:
        return 0
    wanted = [*ids[len(ids) - (n - 1) :], token]
    return sum(ids[i : i + n] == wanted for i in range(len(ids) - n + 1))


@given(IDS, st.integers(1, 4), st.integers(0, 4), st.integers(0, V - 1), st.integers(0, 14))
def test_soft_blocking_divides_by_four_per_earlier_occurrence(
    ids: list[int], n: int, padding: int, pad: int, prompt: int
) -> None:
    history, row = open_history(ids, padding, pad, min(prompt, len(ids)))
    log_p = torch.log_softmax(torch.arange(V, dtype=torch.float64)[None], -1)
    after = NgramProcessor(n, history)(row, log_p).exp()[0].tolist()
    expected = [math.exp(log_p[0, token]) / 4 ** occurrences(ids, n, token) for token in range(V)]
    assert after == pytest.approx(expected, rel=1e-12)


@given(IDS, st.integers(1, 4))
def test_hard_blocking_is_hugging_faces_on_unpadded_ids(ids: list[int], n: int) -> None:
    from transformers import NoRepeatNGramLogitsProcessor

    history, row = open_history(ids)
    scores = torch.arange(V, dtype=torch.float32)[None]
    theirs = NoRepeatNGramLogitsProcessor(n)(row, scores)
    assert torch.equal(NgramProcessor(n, history, penalty=math.inf)(row, scores), theirs)


@given(IDS, st.integers(1, 4), st.integers(1, 4), st.integers(0, V - 1))
def test_padding_is_never_part_of_an_ngram(ids: list[int], n: int, padding: int, pad: int) -> None:
    scores = torch.zeros(1, V)
    plain, plain_row = open_history(ids)
    wide, wide_row = open_history(ids, padding, pad)
    for penalty in (1.0, math.inf):
        alone = NgramProcessor(n, plain, penalty)(plain_row, scores)
        assert torch.equal(NgramProcessor(n, wide, penalty)(wide_row, scores), alone)
    assert torch.equal(NoveltyProcessor(0.3, wide)(wide_row, scores), NoveltyProcessor(0.3, plain)(plain_row, scores))


def test_no_ngram_spans_a_hole() -> None:
    # 6 5 after a masked position, and 6 again after another: 5 would complete the bigram, and no trigram.
    history = History(torch.tensor([[-1, 6, 5, -1, 6]]), start=5)
    row = torch.tensor([[0, 6, 5, 0, 6]])
    assert NgramProcessor(3, history, math.inf)(row, torch.zeros(1, V)).tolist() == [[0.0] * V]
    assert NgramProcessor(2, history, math.inf)(row, torch.zeros(1, V))[0, 5] == -math.inf


def test_ngrams_of_a_source_do_not_run_into_the_output() -> None:
    # Source 4 5, output 6 5: with everything seen, "4 5" and "6 5" are bigrams and "5 6" (across the gap) is not.
    history = History(torch.tensor([[4, 5]]), start=1, joined=False, seen="all")
    banned = NgramProcessor(2, history, math.inf)
    assert (banned(torch.tensor([[0, 6, 5]]), torch.zeros(1, V)) == -math.inf)[0].nonzero().flatten().tolist() == []
    after_four = banned(torch.tensor([[0, 6, 5, 4]]), torch.zeros(1, V))
    assert (after_four == -math.inf)[0].nonzero().flatten().tolist() == [5]


def test_beams_share_their_rows_prompt() -> None:
    history = History(torch.tensor([[-1, 1], [2, 3]]), start=2)
    rows = torch.tensor([[0, 1], [0, 1], [2, 3], [2, 3]])  # two beams a row
    p = NoveltyProcessor(0.5, history)(rows, torch.zeros(4, 4)).exp()
    assert p[0].tolist() == p[1].tolist() == pytest.approx([2 / 7, 1 / 7, 2 / 7, 2 / 7])
    assert p[2].tolist() == p[3].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 6, 1 / 6])


@pytest.mark.parametrize("gamma", [0.0, -1.0, 1.01, math.nan])
def test_gamma_outside_its_range(gamma: float) -> None:
    with pytest.raises(ValueError, match=r"gamma must lie in \(0, 1\]"):
        NoveltyProcessor(gamma, open_history([1])[0])


@given(IDS, st.floats(0.5, 2.0), st.lists(st.floats(-6, 6, width=32), min_size=V, max_size=V), st.integers(0, 3))
def test_the_repetition_penalty_is_hugging_faces(
    ids: list[int], penalty: float, logits: list[float], padding: int
) -> None:
    """Without padding exactly theirs; with padding as without, where theirs would count it."""
    scores = torch.tensor([logits])
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([ids]), scores.clone())
    for width in (0, padding):
        history, row = open_history(ids, width, prompt=min(3, len(ids)))
        assert torch.allclose(RepetitionPenaltyProcessor(penalty, history)(row, scores), theirs)


def test_the_repetition_penalty_comes_before_what_normalises() -> None:
    history, _ = open_history([0, 1])
    first, second = decoding.parse("greedy,gamma=0.5,repetition_penalty=1.5").processors(history)
    assert isinstance(first, RepetitionPenaltyProcessor)
    assert isinstance(second, NoveltyProcessor)
    with pytest.raises(ValueError, match=r"repetition_penalty must be positive, not 0.0"):
        decoding.parse("greedy,repetition_penalty=0")
