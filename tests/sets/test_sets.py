"""Which tokens each set discourages: examples by hand, the compact form against the dense, and sets of one's own."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from scalegrad.functional import scale_grad
from scalegrad.functional.inputs import Batch, rows_of
from scalegrad.ops.sparse import next_places
from scalegrad.sets import History, Ids, Members, NgramRepeat, Seen, TokenSet
from scalegrad.sets.token_sets import Both, Either, Not
from tests import oracles
from tests.calls import FAST_WAYS, OBJECTIVES, WAYS, gradient
from tests.cases import token_sets

VOCAB = 10
_ = -100  # an ignored target


def history(targets, **data):
    """The history of one row of targets, as the losses build it."""
    data = {name: torch.tensor([data[name]]) if name in data else None for name in ("context", "source", "segments")}
    row = torch.tensor([targets])
    return rows_of(Batch(row, **data), VOCAB, -100, may_sync=True).history


def listed(token_set, targets, **data):
    """The discouraged ids at each step, from the compact form; it must agree with the dense one."""
    past = history(targets, **data)
    compact, dense = token_set.compact(past).mask(VOCAB), token_set.dense(past)
    assert torch.equal(compact, dense)
    return [set(row.nonzero().flatten().tolist()) for row in dense]


# ---- examples by hand ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token_set", "targets", "data", "expected"),
    [
        pytest.param(Seen(), [4, 7, 4, 1], {}, [set(), {4}, {4, 7}, {4, 7}], id="seen"),
        pytest.param(Seen(), [4, _, 7, 1], {}, [set(), {4}, {4}, {4, 7}], id="ignored is not seen"),
        pytest.param(Seen(), [_, _, 7, 1], {}, [set(), set(), set(), {7}], id="left padding"),
        pytest.param(Seen(), [4, 7, 4, 1], {"segments": [1, 1, 2, 2]}, [set(), {4}, set(), {4}], id="documents"),
        pytest.param(
            Seen(),
            [4, 7, 4, 1],
            {"segments": [1, 2, 1, 1]},
            [set(), set(), set(), {4}],
            id="a document does not resume",
        ),
        pytest.param(
            Seen(), [_, _, 5, 6], {"context": [1, 2, 3, 5]}, [{1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 5}], id="context"
        ),
        pytest.param(
            Seen(), [4, 5, 6], {"context": [-1, 4, -7]}, [set(), {4}, {4}], id="negative context counts for nothing"
        ),
        pytest.param(Seen(), [4, 5], {"source": [9, 8, -1, 9]}, [{8, 9}, {4, 8, 9}], id="source"),
        pytest.param(
            Seen(),
            [4, 5, 6, 4],
            {"source": [9], "segments": [0, 0, 1, 1]},
            [{9}, {4, 9}, {9}, {6, 9}],
            id="a source serves every document",
        ),
        pytest.param(
            Seen(),
            [4, 5, 6, 4],
            {"context": [0, 1, 2, 3], "segments": [0, 0, 1, 1]},
            [{0}, {0, 1}, {2}, {2, 3}],
            id="context in documents",
        ),
        pytest.param(Seen(window=2), [1, 2, 3, 1, 4], {}, [set(), {1}, {1, 2}, {2, 3}, {1, 3}], id="window"),
        pytest.param(
            Seen(window=2), [1, 2, _, 4, 5], {}, [set(), {1}, {1, 2}, {2}, {4}], id="an ignored one takes a place"
        ),
        pytest.param(Seen(window=9), [1, 2, 1], {}, [set(), {1}, {1, 2}], id="window longer than the sequence"),
        pytest.param(Seen(window=3), [1, 2, 1], {}, [set(), {1}, {1, 2}], id="window as long as the sequence"),
        pytest.param(
            Seen(window=2),
            [1, 2, 3, 4],
            {"segments": [0, 0, 0, 1]},
            [set(), {1}, {1, 2}, set()],
            id="window and documents",
        ),
        pytest.param(
            Seen(window=1), [1, 2, 3], {"source": [9]}, [{9}, {1, 9}, {2, 9}], id="a window does not end the source"
        ),
        pytest.param(Seen(window=1), [1, 2, 3], {"context": [7, 1, 2]}, [{7}, {1}, {2}], id="window on a context"),
        pytest.param(Ids([2, 5, 2]), [1, 2, _], {}, [{2, 5}] * 3, id="ids"),
        pytest.param(Ids([]), [1, 2], {}, [set(), set()], id="no ids"),
        pytest.param(NgramRepeat(1), [4, 7, 4, 1], {}, [set(), {4}, {4, 7}, {4, 7}], id="unigrams are Seen"),
        pytest.param(NgramRepeat(2), [1, 2, 1, 3, 1, 9], {}, [set()] * 3 + [{2}, set(), {2, 3}], id="bigrams"),
        pytest.param(NgramRepeat(2), [5, 5, 5, 9], {}, [set(), set(), {5}, {5}], id="bigrams that overlap"),
        pytest.param(NgramRepeat(3), [1, 2, 3, 0, 1, 2, 9], {}, [set()] * 6 + [{3}], id="trigrams"),
        pytest.param(NgramRepeat(2), [1, 2, _, 1, 9], {}, [set()] * 4 + [{2}], id="ignored: later places still repeat"),
        pytest.param(NgramRepeat(2), [1, _, 2, 1, 9], {}, [set()] * 5, id="ignored breaks an n-gram"),
        pytest.param(
            NgramRepeat(2), [1, 2, 1, 9], {"segments": [0, 0, 1, 1]}, [set()] * 4, id="no n-gram of another document"
        ),
        pytest.param(
            NgramRepeat(2),
            [1, 2, 1, 2, 1],
            {"segments": [0, 1, 1, 1, 1]},
            [set(), set(), set(), set(), {1}],
            id="no n-gram across documents",
        ),
        pytest.param(NgramRepeat(2), [1, 9, 1], {"source": [1, 2, 3]}, [set(), {2}, set()], id="n-gram in the source"),
        pytest.param(
            NgramRepeat(2), [2, 1, 9], {"source": [5, 1]}, [set()] * 3, id="no n-gram across source and document"
        ),
        pytest.param(
            NgramRepeat(2), [3, 1, 9], {"source": [1, -1, 2]}, [set()] * 3, id="a hole breaks an n-gram of the source"
        ),
        pytest.param(Seen(exempt=[4, 99]), [4, 7, 1], {}, [set(), set(), {7}], id="exempt"),
        pytest.param(Ids([1, 2], exempt=[2]), [0, 0], {}, [{1}, {1}], id="exempt from ids"),
        pytest.param(Seen() & Ids([4]), [4, 7, 1], {}, [set(), {4}, {4}], id="and"),
        pytest.param(Seen() | Ids([9]), [4, 7, 1], {}, [{9}, {4, 9}, {4, 7, 9}], id="or"),
        pytest.param(~Ids(range(2, 10)), [4, 7], {}, [{0, 1}, {0, 1}], id="not"),
        pytest.param(~~Seen(), [4, 7, 1], {}, [set(), {4}, {4, 7}], id="not not"),
        pytest.param(Seen() & ~Ids([4]), [4, 7, 1], {}, [set(), set(), {7}], id="and not"),
        pytest.param(~Seen() & Ids([4, 7]), [4, 7, 1], {}, [{4, 7}, {7}, set()], id="not and"),
        pytest.param(~(~Seen() | Ids([4])), [4, 7, 1], {}, [set(), set(), {7}], id="de Morgan"),
        pytest.param(Seen(exempt=[4]) | Ids([4]), [4, 7, 1], {}, [{4}, {4}, {4, 7}], id="exempt binds to its own set"),
        pytest.param(~Seen(exempt=[4]), [4, 7], {}, [set(range(10)), set(range(10))], id="exempt before not"),
        pytest.param(Not(Ids([4]), exempt=[5, 99]), [4], {}, [set(range(10)) - {4, 5}], id="exempt after not"),
        pytest.param(Both(Seen(), Ids([4, 7]), exempt=[7]), [4, 7, 1], {}, [set(), {4}, {4}], id="exempt after and"),
        pytest.param(Either(Seen(), Ids([9]), exempt=[9]), [4, 7, 1], {}, [set(), {4}, {4, 7}], id="exempt after or"),
    ],
)
def test_by_hand(token_set, targets, data, expected):
    assert listed(token_set, targets, **data) == expected


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_compact_and_dense_agree_with_loops(data):
    token_set = data.draw(token_sets(VOCAB))
    steps = data.draw(st.integers(1, 12))
    ids = st.integers(0, 4)  # few, so that they repeat
    row = st.lists(st.one_of(ids, st.just(-100)), min_size=steps, max_size=steps)
    targets = data.draw(row)
    more = {}
    if data.draw(st.booleans()):
        more["segments"] = data.draw(st.lists(st.integers(0, 1), min_size=steps, max_size=steps))
    if data.draw(st.booleans()):
        more["context"] = data.draw(row)
    if data.draw(st.booleans()):
        more["source"] = data.draw(st.lists(st.integers(-1, 9), min_size=1, max_size=4))
    found = listed(token_set, targets, **more)
    source = more.pop("source", [])
    for step in range(steps):
        read = oracles.readable(targets, step, **more)
        assert found[step] == oracles.discouraged(token_set, read, source, VOCAB)


# ---- printing and comparing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token_set", "text"),
    [
        (Seen(), "Seen()"),
        (Seen(window=3, exempt=[1]), "Seen(exempt=(1,), window=3)"),
        (Ids([3, 1, 3]), "Ids(ids=(3, 1))"),
        (NgramRepeat(4), "NgramRepeat(n=4)"),
        (Seen() & ~Ids([1]) | NgramRepeat(2), "((Seen() & ~Ids(ids=(1,))) | NgramRepeat(n=2))"),
        (~(Seen() | Ids([1])), "~(Seen() | Ids(ids=(1,)))"),
    ],
)
def test_sets_print_as_they_are_written(token_set, text):
    assert repr(token_set) == text


def test_sets_are_values():
    assert Seen(exempt=[1, 2]) == Seen(exempt=(1, 2))
    assert Seen() != Seen(window=3)
    assert {Seen() & Ids([1]): "x"}[Seen() & Ids([1])] == "x"
    assert Ids(iter([1, 2])) == Ids([1, 2])
    with pytest.raises(AttributeError):
        Seen().window = 3


# ---- Members ---------------------------------------------------------------------------------------------------------


def test_members_take_follows_each_rows_own_list():
    """Also when as many rows as lists are taken, all of one list."""
    past = rows_of(Batch(torch.tensor([[1, 2, 3], [4, 5, 6]])), VOCAB, -1, may_sync=True).history
    members = Seen().members(past)
    whole = members.mask(VOCAB)
    for rows in ([1, 2], [4, 5], [5, 0], [2], [0, 1, 2, 3, 4, 5]):
        part = members.take(torch.tensor(rows))
        assert torch.equal(part.mask(VOCAB), whole[rows])
        assert torch.equal(part.take(slice(0, 2)).mask(VOCAB), whole[rows[:2]])
        assert torch.equal(part.inverse().take(slice(1, 2)).mask(VOCAB), ~whole[rows[1:2]])


def test_members_of_rows_count_each_id_once():
    members = Members.of_rows(torch.tensor([[3, 3, -1, 3], [0, 2, 0, -1], [-1, -1, -1, -1]]))
    assert members.mask(4).nonzero().tolist() == [[0, 3], [1, 0], [1, 2]]
    last = (next_places(members.ids) >= 4) & (members.ids >= 0)  # the last place of each id stands for all of them
    assert last.tolist() == [[False, False, False, True], [False, True, True, False], [False] * 4]


# ---- a set of one's own ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SeenTwice(TokenSet):
    """Tokens used at least `times` times: ten lines, and every implementation runs it."""

    times: int = 2

    def members(self, history: History) -> Members:
        entries = history.entries
        readable = history.readable()  # [R, T, S + T]
        equal = (entries[:, :, None] == entries[:, None, :]).float()
        count = readable.float() @ equal  # how often step t has read the token of entry s
        return Members.chosen(entries, readable & (count >= self.times))


@dataclass(frozen=True, repr=False)
class Multiples(TokenSet):
    """Every n-th token of the vocabulary: dense only."""

    n: int

    def mask(self, history):
        return (torch.arange(history.vocab) % self.n == 0).expand(history.arrivals.numel(), -1)


TARGETS = torch.tensor([[1, 2, 1, 3, 1, 2, 0], [4, 4, -100, 4, 5, 5, 1]])
OWN = [
    (SeenTwice(), [[set(), set(), set(), {1}, {1}, {1}, {1, 2}], [set(), set(), {4}, {4}, {4}, {4}, {4, 5}]]),
    (SeenTwice(3, exempt=[4]), [[set()] * 5 + [{1}] * 2, [set()] * 7]),
    (SeenTwice() & Ids([1, 4]), [[set(), set(), set(), {1}, {1}, {1}, {1}], [set(), set(), *[{4}] * 5]]),
]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize(("objective", "strength"), [("scale_grad", 0.3), ("unlikelihood", 1.0)])
@pytest.mark.parametrize(("token_set", "expected"), OWN, ids=lambda value: repr(value)[:40])
def test_a_set_of_ones_own_runs_everywhere(way, objective, strength, token_set, expected):
    random = torch.Generator().manual_seed(1)
    logits = torch.randn(2, 7, VOCAB, generator=random, dtype=torch.float64)
    loss, grad = gradient(objective, way, logits, TARGETS, strength, discourage=token_set, reduction="none")
    for row in range(2):
        for step in range(7):
            target = TARGETS[row, step].item()
            if target < 0:
                assert loss[row, step] == 0
                continue
            rule = getattr(oracles, objective)
            value, exact = rule(logits[row, step].tolist(), target, expected[row][step], strength)
            assert loss[row, step].item() == pytest.approx(value, rel=1e-12)
            assert grad[row, step].tolist() == pytest.approx(exact, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_dense_set_of_ones_own_runs_under_the_reference(objective):
    logits = torch.randn(2, 7, VOCAB, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    same = Ids([0, 3, 6, 9])
    for form in ("logits", "linear"):
        way = (form, "reference")
        for own, known in ((Multiples(3), same), (Multiples(3, exempt=[3]) | Seen(), Ids([0, 6, 9]) | Seen())):
            loss, grad = gradient(objective, way, logits, TARGETS, discourage=own)
            expected, exact = gradient(objective, way, logits, TARGETS, discourage=known)
            assert torch.equal(loss, expected)
            assert torch.equal(grad, exact)
    for way in FAST_WAYS:
        with pytest.raises(ValueError, match=r"Multiples\(n=3\) has no compact form"):
            gradient(objective, way, logits, TARGETS, discourage=Multiples(3))


def test_a_set_that_says_nothing_says_so():
    class Forgotten(TokenSet):
        pass

    with pytest.raises(NotImplementedError, match=r"Forgotten must define members\(history\) or mask\(history\)"):
        gradient(
            "scale_grad",
            ("logits", "reference"),
            torch.zeros(1, 2, 3),
            torch.zeros(1, 2).long(),
            discourage=Forgotten(),
        )


# ---- what is kept from call to call ----------------------------------------------------------------------------------


def test_ranges_kept_from_an_earlier_call_serve_another_row_and_a_gradient():
    targets = torch.tensor([[4, 7, 4, 1]])
    with torch.inference_mode():
        first = Seen().compact(history([4, 7, 4, 1]))
    again = Seen().compact(history([1, 2, 3, 5]))
    assert again.end is first.end
    assert again.end.tolist() == [1, 2, 3, 4]
    assert Seen(window=2).compact(history([1, 2, 3, 5])).begin.tolist() == [0, 0, 1, 2]
    assert again.begin.tolist() == [0] * 4  # a window changes nothing that is kept
    logits = torch.zeros(1, 4, VOCAB, requires_grad=True)
    scale_grad(logits, targets, 0.5).backward()  # inference tensors could not be kept for it
    # The last target is novel, γ 0.5, and two of ten tokens were seen: p̃ = 0.5 / (2 + 8 · 0.5)
    assert logits.grad[0, 3, 1].item() == pytest.approx((0.5 / 6 - 1) / 4)


def test_a_mode_that_makes_other_tensors_leaves_nothing_behind():
    past = history([4] * 7)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(Seen().compact(past).end, FakeTensor)
    assert Seen().compact(past).end.tolist() == [1, 2, 3, 4, 5, 6, 7]
