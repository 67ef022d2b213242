"""The text form of strategies, and the distributions they sample from, against brute force."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad import decoding
from scalegrad.decoding import Beam, EndProcessor, Greedy, History, MinP, TopK, TopP, Typical, parse

# Distinct by at least 1/8: among ties any choice is right.
LOGITS = st.lists(st.integers(-64, 64).map(lambda x: x / 8), min_size=2, max_size=12, unique=True)
HISTORY = History(prompt=torch.zeros(1, 0, dtype=torch.long), start=0)


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def kept(strategy: decoding.Strategy, logits: list[float]) -> list[float]:
    """The strategy's distribution over the next token."""
    scores = torch.tensor([logits])
    for processor in strategy.processors(HISTORY):
        scores = processor(torch.zeros(1, 0, dtype=torch.long), scores)
    return torch.softmax(scores.double(), -1)[0].tolist()


def renormalised(p: list[float], keep: set[int]) -> list[float]:
    mass = sum(p[i] for i in keep)
    return [p[i] / mass if i in keep else 0.0 for i in range(len(p))]


@given(LOGITS, st.integers(1, 14), st.floats(0.3, 3.0))
def test_top_k_is_the_k_likeliest_renormalised(logits: list[float], k: int, temperature: float) -> None:
    p = softmax([x / temperature for x in logits])
    keep = set(sorted(range(len(p)), key=lambda i: -p[i])[:k])
    assert kept(TopK(k, temperature=temperature), logits) == pytest.approx(renormalised(p, keep), abs=1e-5)


@given(LOGITS, st.floats(0.05, 0.99))
def test_top_p_is_the_smallest_set_of_likeliest_that_reaches_p(logits: list[float], threshold: float) -> None:
    p = softmax(logits)
    keep: set[int] = set()
    for i in sorted(range(len(p)), key=lambda i: -p[i]):
        if sum(p[j] for j in keep) >= threshold:
            break
        keep.add(i)
    if any(abs(sum(sorted(p, reverse=True)[:n]) - threshold) < 1e-5 for n in range(len(p))):
        return  # float32 may fall on either side of the threshold
    assert kept(TopP(threshold), logits) == pytest.approx(renormalised(p, keep), abs=1e-5)


@given(LOGITS, st.floats(0.01, 0.99))
def test_min_p_keeps_what_is_near_the_likeliest(logits: list[float], least: float) -> None:
    p = softmax(logits)
    if any(abs(x - least * max(p)) < 1e-6 for x in p):
        return
    keep = {i for i, x in enumerate(p) if x >= least * max(p)}
    assert kept(MinP(least), logits) == pytest.approx(renormalised(p, keep), abs=1e-5)


@given(LOGITS, st.floats(0.05, 0.95))
def test_typical_takes_the_tokens_of_nearly_average_surprise(logits: list[float], mass: float) -> None:
    p = softmax(logits)
    entropy = -sum(x * math.log(x) for x in p if x > 0)
    order = sorted(range(len(p)), key=lambda i: abs(-math.log(p[i]) - entropy))
    distance = [abs(-math.log(p[i]) - entropy) for i in order]
    sums = [sum(p[i] for i in order[: n + 1]) for n in range(len(order))]
    if any(b - a < 1e-4 for a, b in pairwise(distance)) or any(abs(s - mass) < 1e-5 for s in sums):
        return
    count = next(n for n, s in enumerate(sums) if s >= mass) + 1
    assert kept(Typical(mass), logits) == pytest.approx(renormalised(p, set(order[:count])), abs=1e-5)


@pytest.mark.parametrize("text", ["top_k=3", "top_p=0.7", "min_p=0.2", "typical=0.6", "top_p=1.0,temperature=2.0"])
def test_draws_follow_the_distribution(make_model, text: str) -> None:
    """4,000 rows that differ in their key alone, drawn by `generate`, against the brute-force distribution."""
    model, rows = make_model("gpt2", vocabulary=8, seed=1, sharpness=20.0), 4000
    prompt = [3, 4, 5]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1].tolist()
    expected = kept(parse(text), logits)
    drawn = decoding.generate(model, [prompt] * rows, text, new_tokens=1, min_new_tokens=0, seed=11)
    counts = [sum((ids or [1]) == [token] for ids in drawn) for token in range(8)]  # nothing: the end symbol, id 1
    assert all(count == 0 for count, p in zip(counts, expected, strict=True) if p == 0.0)
    cells = [(count, rows * p) for count, p in zip(counts, expected, strict=True) if p > 0.0]
    assert len(cells) > 1
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    assert statistic < 30  # chi-square with at most 7 degrees of freedom exceeds 30 once in 10,000


STRATEGIES = st.one_of(
    st.builds(Greedy, gamma=st.floats(0.01, 1.0), exempt=st.lists(st.integers(0, 99), max_size=3).map(tuple)),
    st.builds(Beam, st.integers(1, 9), gnmt=st.floats(0, 2), block_words=st.integers(0, 4), block=st.integers(0, 4)),
    st.builds(TopK, st.integers(1, 99), temperature=st.floats(0.1, 2.0)),
    st.builds(TopP, st.floats(0.01, 1.0), seen=st.sampled_from([None, "all", "generated", "prompt"])),
    st.builds(MinP, st.floats(0.0, 1.0)),
    st.builds(Typical, st.floats(0.01, 0.99), soft_block=st.integers(0, 4)),
)


@given(STRATEGIES)
def test_text_and_object_say_the_same(strategy: decoding.Strategy) -> None:
    assert parse(str(strategy)) == strategy


def test_texts_people_write() -> None:
    assert parse("beam=5,gnmt=1.0,block_words=3") == Beam(5, gnmt=1.0, block_words=3)
    assert parse(" top_p = 0.9 , temperature = 0.7 ") == TopP(0.9, temperature=0.7)
    assert parse("beam") == Beam(6)
    assert parse("greedy,soft_block=3") == Greedy(soft_block=3)
    assert str(Beam(5, gnmt=1.5, gamma=0.5)) == "beam=5,gnmt=1.5,gamma=0.5"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "one of greedy, beam, top_k, top_p, min_p, typical, not ''"),
        ("nucleus=0.9", "not 'nucleus'"),
        ("greedy=3", "greedy takes no number of its own"),
        ("beam=5,gnmt", "'gnmt' is without a value"),
        ("beam=5,temperature=2", "'temperature' is unknown"),
        ("beam=5,gnmt=1,gnmt=2", "'gnmt' is twice"),
        ("top_k=four", "k must be a whole number, not 'four'"),
        ("top_p=1.5", r"p must be in \(0, 1\], not 1.5"),
        ("top_p=nan", r"p must be in \(0, 1\], not nan"),
        ("top_k=3,temperature=0", "temperature must be positive, not 0.0"),
        ("greedy,gamma=0", r"gamma must be in \(0, 1\], not 0.0"),
        ("greedy,seen=before", "seen must be one of all, generated, prompt, not 'before'"),
        ("greedy,exempt=a", "exempt must be token ids joined by"),
        ("beam=0", "size must be a whole number, 1 or more, not 0"),
    ],
)
def test_a_bad_text_gets_one_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


@settings(max_examples=20)
@given(st.floats(1.5, 9.5))
def test_sizes_are_whole_numbers(size: float) -> None:
    if size.is_integer():
        return
    with pytest.raises(ValueError, match="whole number"):
        TopK(size)  # type: ignore[arg-type]


def test_greedy_length_normalisation_in_text_form():
    strategy = parse("greedy,gnmt=0.6,soft_block=3")
    assert strategy == Greedy(gnmt=0.6, soft_block=3)
    assert parse(str(strategy)) == strategy
    history = History(prompt=torch.empty(1, 0), start=1, ends=(2,))
    assert isinstance(strategy.processors(history)[-1], EndProcessor)  # after blocking: it decides on what is left
    assert Greedy().processors(history) == []
    with pytest.raises(ValueError, match=r"greedy: gnmt must be 0 or more, not -1\.0"):
        Greedy(gnmt=-1.0)


# ---- the order in which scores are changed ---------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs" / "decoding.md"
EACH_ON = {"gamma": 0.5, "soft_block": 2, "repetition_penalty": 1.5, "block": 3}


def settings_of(processor: object) -> tuple[object, ...]:
    """The kind of a processor and its numbers: enough to tell the two kinds of blocking apart."""
    return (type(processor), *(value for value in vars(processor).values() if isinstance(value, int | float)))


def order_in_code() -> list[str]:
    field_of = {settings_of(*Greedy(**{name: value}).processors(HISTORY)): name for name, value in EACH_ON.items()}
    return [field_of[settings_of(processor)] for processor in Greedy(**EACH_ON).processors(HISTORY)]


def order_in_docs(text: str) -> list[str]:
    """The fields that change scores, as the table after "in this order" lists them."""
    table = text.split("in this order:")[1].lstrip().split("\n\n")[0]
    return [name for name in re.findall(r"^\| `(\w+)=", table, re.MULTILINE) if name in EACH_ON]


def test_the_docs_list_processors_in_the_order_of_the_code() -> None:
    assert len(order_in_code()) == len(EACH_ON)
    assert order_in_docs(DOCS.read_text()) == order_in_code()


def test_another_order_in_the_docs_is_noticed() -> None:
    first, second, *_ = order_in_code()
    swapped = f"in this order:\n\n| field | |\n|---|---|\n| `{second}=x` | a |\n| `{first}=x` | b |\n\nMore."
    assert order_in_docs(swapped) == [second, first]
