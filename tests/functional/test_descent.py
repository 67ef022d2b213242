"""One small descent step on the logits moves probability the way the documentation of each set says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad.sets import Ids, NgramRepeat, Seen
from tests.calls import WAYS, gradient

EOS = 7
VOCAB = 8

# (set, what was said before, the target, what the documentation says is discouraged now)
SAID = [
    pytest.param(Seen(), [1, 2, 3, 1], 5, {1, 2, 3}, id="Seen"),
    pytest.param(Seen(), [1, 2, 3, 1], 2, {1, 2, 3}, id="Seen, and so was the target"),
    pytest.param(Seen(window=2), [1, 2, 3, 4], 5, {3, 4}, id="window"),
    pytest.param(Seen(exempt=[2]), [1, 2, 3], 5, {1, 3}, id="exempt"),
    pytest.param(Ids([EOS]), [1, 2], 5, {EOS}, id="end of sequence"),
    pytest.param(NgramRepeat(3), [1, 2, 3, 4, 1, 2], 5, {3}, id="trigram"),
    pytest.param(NgramRepeat(2), [1, 2, 1, 3, 1], 5, {2, 3}, id="bigram"),
    pytest.param(Seen() & ~Ids([2]), [1, 2, 3], 5, {1, 3}, id="and not"),
    pytest.param(Seen(window=1) | Ids([EOS]), [1, 2, 3], 5, {3, EOS}, id="or"),
]


def after_step(objective, way, logits, targets, strength, token_set, size=1e-3):
    """The probabilities of the last step after −size · gradient."""
    _, grad = gradient(objective, way, logits, targets, strength, discourage=token_set, reduction="sum")
    return (logits - size * grad)[0, -1].softmax(0)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize(("objective", "strength", "plain"), [("scale_grad", 0.2, 1.0), ("unlikelihood", 1.0, 0.0)])
@pytest.mark.parametrize(("token_set", "said", "target", "discouraged"), SAID)
def test_a_step_lowers_what_is_discouraged(objective, strength, plain, way, token_set, said, target, discouraged):
    logits = torch.zeros(
        1, len(said) + 1, VOCAB, dtype=torch.float64
    )  # all tokens alike: the set alone tells them apart
    targets = torch.tensor([[*said, target]])
    mle = after_step(objective, way, logits, targets, plain, token_set)
    now = after_step(objective, way, logits, targets, strength, token_set)
    others = discouraged - {target}
    for token in range(VOCAB):
        if token == target:
            assert now[token] > 1 / VOCAB  # the target rises under both objectives, discouraged or not
        elif token in others:
            assert now[token] < mle[token] - 1e-6  # below MLE, which lowers it too
            assert now[token] < 1 / VOCAB
        else:
            assert now[token] > mle[token] + 1e-6  # what is not discouraged has the better of it
    if target in discouraged and objective == "scale_grad":
        assert now[target] < mle[target]  # it rises, by less


def odds_after_step(objective, logits, targets, strength, discouraged, novel):
    """Log-odds of each discouraged against each novel token at the last step, after a step of size 1."""
    _, grad = gradient(objective, ("logits", "sparse"), logits, targets, strength, reduction="sum")
    moved = (logits - grad)[0, -1]
    return moved[discouraged][:, None] - moved[novel]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**31), spread=st.sampled_from([0.5, 2.0, 6.0]), gamma=st.floats(0.01, 1))
def test_a_scale_grad_step_shifts_all_odds_from_discouraged_to_novel(seed, spread, gamma):
    """On any logits: against MLE, every discouraged non-target loses odds to every novel non-target."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, 4, VOCAB, generator=random, dtype=torch.float64) * spread
    call = ("scale_grad", logits, torch.tensor([[1, 2, 3, 5]]))
    odds, mle = (odds_after_step(*call, strength, [1, 2, 3], [0, 4, 6, 7]) for strength in (gamma, 1.0))
    assert (odds <= mle + 1e-12).all()


def test_an_unlikelihood_step_may_not():
    """Beside a likely candidate (R > 1), a rarer one is pushed down by less than MLE would: α·(r − R·(p − p_n)) < 0."""
    logits = torch.tensor([0.8, 0.1, 0.05, 0.05], dtype=torch.float64).log().expand(1, 3, 4)
    call = ("unlikelihood", logits, torch.tensor([[0, 1, 3]]))
    odds, mle = (odds_after_step(*call, alpha, [0, 1], [2]) for alpha in (1.0, 0.0))
    assert (mle - odds).tolist() == [
        [pytest.approx(4 - (4 + 1 / 9) * 0.75)],
        [pytest.approx(1 / 9 - (4 + 1 / 9) * 0.05)],
    ]
    assert odds[1] > mle[1]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_step_under_the_complement_lowers_everything_but_the_set(way):
    """SG on ~C with γ is C with 1/γ: what was said is now favoured."""
    logits, targets = torch.zeros(1, 3, VOCAB, dtype=torch.float64), torch.tensor([[1, 2, 5]])
    mle = after_step("scale_grad", way, logits, targets, 1.0, ~Seen())
    now = after_step("scale_grad", way, logits, targets, 0.2, ~Seen())
    assert (now[[1, 2]] > mle[[1, 2]]).all()
    assert (now[[0, 3, 4, 6, 7]] < mle[[0, 3, 4, 6, 7]]).all()
