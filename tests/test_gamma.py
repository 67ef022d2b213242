"""γ as a number, a tensor, a schedule, or what a callable says of each position."""

import math

import pytest
import torch

from scalegrad import ScaleGradLoss
from scalegrad import functional as SF
from scalegrad.gamma import Constant, Cosine, Linear, RewardRepetition, Schedule
from scalegrad.sets import Ids, NgramRepeat, Seen, TokenSet
from tests import oracles
from tests.calls import WAYS, gradient, run

TARGETS = torch.tensor([[0, 1, 0, 3, 1], [4, -100, 4, 2, 2]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [5, 5, 5, 2, 2]])
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)


def random_logits(spread=1.0):
    return torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * spread


# ---- tensors ---------------------------------------------------------------------------------------------------------


@every_way
def test_one_gamma_for_each_position(way):
    gamma = torch.linspace(0.1, 1.0, 10, dtype=torch.float64).view(2, 5).requires_grad_()
    logits = random_logits().requires_grad_()
    loss = run("scale_grad", way, logits, TARGETS, gamma, reduction="none")
    loss.sum().backward()
    assert gamma.grad is None  # detached: γ is set, not learnt
    for row in range(2):
        for step in range(5):
            value = gamma[row, step].item()
            alone, grad = gradient("scale_grad", way, logits, TARGETS, value, reduction="none")
            assert loss[row, step].item() == pytest.approx(alone[row, step].item(), rel=1e-12)
            assert (logits.grad - grad)[row, step].abs().max() < 1e-14


@every_way
def test_one_gamma_as_a_tensor(way):
    """0-d, even one that asks for a gradient."""
    expected, exact = gradient("scale_grad", way, random_logits(), TARGETS, 0.25)
    actual, grad = gradient("scale_grad", way, random_logits(), TARGETS, torch.tensor(0.25, requires_grad=True))
    assert torch.equal(actual, expected)
    assert torch.equal(grad, exact)


# ---- γ > 1, by name --------------------------------------------------------------------------------------------------


@every_way
def test_reward_repetition_is_the_complement_upside_down(way):
    """γ = 5 on C is γ = 1/5 on everything else; and it is Eq. 4 with γ = 5."""
    logits = random_logits()
    loss, grad = gradient("scale_grad", way, logits, TARGETS, RewardRepetition(5.0), reduction="none")
    other, other_grad = gradient("scale_grad", way, logits, TARGETS, 0.2, discourage=~Seen(), reduction="none")
    assert (loss - other).abs().max() < 1e-14
    assert (grad - other_grad).abs().max() < 1e-14
    expected, exact = oracles.scale_grad(logits[0, 3].tolist(), 3, {0, 1}, 5.0)
    assert loss[0, 3].item() == pytest.approx(expected, rel=1e-12)
    assert grad[0, 3].tolist() == pytest.approx(exact, rel=1e-12)


# ---- callables -------------------------------------------------------------------------------------------------------


class Odd(TokenSet):
    """Without a compact form."""

    def mask(self, history):
        return (torch.arange(history.vocab) % 2 == 1).expand(history.arrivals.numel(), -1)


@every_way
@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize(
    "token_set", [Seen(), Seen(window=1), NgramRepeat(2), Ids([3, 5]), ~Seen(), Seen() & ~Ids([1]), Odd()], ids=repr
)
@pytest.mark.filterwarnings("ignore:scalegrad. the reference implementation runs")
def test_a_callable_is_told_position_entropy_and_mass(way, softcap, token_set):
    """Against loops; the position restarts with each document."""
    if isinstance(token_set, Odd):
        way = (way[0], "reference")
    logits = random_logits(3.0)
    told = []

    def gamma(position, entropy, seen_mass):
        told.append((position.clone(), entropy.clone(), seen_mass.clone()))
        return torch.full_like(entropy, 0.5)

    call = {"discourage": token_set, "softcap": softcap, "segments": SEGMENTS, "reduction": "none"}
    loss = run("scale_grad", way, logits.clone().requires_grad_(), TARGETS, gamma, **call)
    ((position, entropy, seen_mass),) = told
    assert position.tolist() == [[0, 1, 0, 1, 2], [0, 1, 2, 0, 1]]
    assert not entropy.requires_grad
    assert not seen_mass.requires_grad
    for row in range(2):
        for step in range(5):
            if TARGETS[row, step] < 0:
                continue
            o, _ = oracles.head(logits[row, step].tolist(), softcap)
            total = oracles.log_sum_exp(o)
            p = [math.exp(x - total) for x in o]
            read = oracles.readable(TARGETS[row].tolist(), step, segments=SEGMENTS[row].tolist())
            found = {1, 3, 5} if isinstance(token_set, Odd) else oracles.discouraged(token_set, read, [], 6)
            assert entropy[row, step].item() == pytest.approx(-math.fsum(x * math.log(x) for x in p), rel=1e-10)
            assert seen_mass[row, step].item() == pytest.approx(math.fsum(p[i] for i in found), rel=1e-10)
    assert torch.equal(loss, run("scale_grad", way, logits, TARGETS, 0.5, **call))


@every_way
def test_what_a_callable_says_is_used_and_detached(way):
    """γ = 1 − mass/2: the gradient is that of the numbers, not through them."""
    parts = run("scale_grad", way, random_logits(), TARGETS, return_parts=True)[1]
    fixed = gradient("scale_grad", way, random_logits(), TARGETS, 1 - parts.seen_mass / 2)
    live = gradient("scale_grad", way, random_logits(), TARGETS, lambda position, entropy, mass: 1 - mass / 2)
    assert live[0].item() == pytest.approx(fixed[0].item(), rel=1e-12)
    assert (live[1] - fixed[1]).abs().max() < 1e-14


def test_a_callable_may_give_one_number_and_follow_the_entropy():
    expected = SF.scale_grad(random_logits(), TARGETS, 0.5)
    assert SF.scale_grad(random_logits(), TARGETS, lambda *_: 0.5).item() == pytest.approx(expected.item(), rel=1e-12)
    # Entropy is 0 where the target is ignored: a γ of 0 there is nobody's mistake.
    loss = SF.scale_grad(random_logits(), TARGETS, lambda position, entropy, mass: (entropy / math.log(6)).clamp(max=1))
    assert loss.isfinite()


def test_a_certain_prediction_has_no_entropy():
    logits = torch.full((1, 1, 3), -math.inf)
    logits[0, 0, 1] = 7.0
    told = []
    SF.scale_grad(logits, torch.tensor([[1]]), lambda position, entropy, mass: told.append((entropy, mass)) or 0.5)
    assert told[0][0].item() == 0
    assert told[0][1].item() == 0


# ---- schedules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (Constant(0.3), {0: 0.3, 10**6: 0.3}),
        (Linear(1.0, 0.2, steps=100), {0: 1.0, 25: 0.8, 50: 0.6, 100: 0.2, 1000: 0.2}),
        (Linear(1.0, 0.2, steps=100, delay=50), {0: 1.0, 50: 1.0, 100: 0.6, 150: 0.2, 151: 0.2}),
        (Linear(0.1, 1.0, steps=4), {0: 0.1, 1: 0.325, 2: 0.55, 4: 1.0}),
        (Cosine(1.0, 0.2, steps=90), {0: 1.0, 30: 0.8, 45: 0.6, 60: 0.4, 90: 0.2, 91: 0.2}),  # cos 60° = 1/2
        (Cosine(0.2, 0.6, steps=100, delay=10), {10: 0.2, 35: 0.2 + 0.2 * (1 - math.sqrt(0.5)), 110: 0.6}),
    ],
    ids=repr,
)
def test_schedules(schedule, values):
    for step, value in values.items():
        assert schedule.at(step) == pytest.approx(value, rel=1e-14)
    last = max(values)
    assert schedule.at(last) == values[last]  # the end is met exactly


def test_a_schedule_follows_the_step_of_its_module():
    loss = ScaleGradLoss(Linear(1.0, 0.2, steps=10))
    with pytest.raises(ValueError, match="never told its step"):
        loss(random_logits(), TARGETS)
    for step, gamma in ((0, 1.0), (5, 0.6), (10, 0.2), (99, 0.2)):
        loss.step = step
        assert loss(random_logits(), TARGETS).item() == SF.scale_grad(random_logits(), TARGETS, gamma).item()
        weight = torch.eye(6, dtype=torch.float64)
        linear = loss.linear(random_logits(), weight, TARGETS)
        assert linear.item() == pytest.approx(SF.scale_grad(random_logits(), TARGETS, gamma).item(), rel=1e-12)
    assert SF.scale_grad(random_logits(), TARGETS, Constant(0.3)).item() == ScaleGradLoss(0.3)(random_logits(), TARGETS)


def test_a_schedule_of_ones_own_is_held_to_the_range():
    class Halving(Schedule):
        def at(self, step):
            return 2.0 ** (1 - step)

    loss = ScaleGradLoss(Halving())
    loss.step = 2
    assert loss(random_logits(), TARGETS).item() == SF.scale_grad(random_logits(), TARGETS, 0.5).item()
    with pytest.raises(ValueError, match=r"gamma must be a number in \(0, 1\], not 2.0"):
        loss.step = 0
