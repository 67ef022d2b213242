"""What the paper says about the two objectives, one named test for each statement."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from scalegrad import functional as SF
from tests import oracles
from tests.calls import OBJECTIVES, WAYS, gradient

every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)
both_objectives = pytest.mark.parametrize("objective", OBJECTIVES)
QUICK = settings(max_examples=60, deadline=None)
MLE = {"scale_grad": 1.0, "unlikelihood": 0.0}  # the strength at which each is plain cross-entropy


def step(objective, way, p, seen, target, strength):
    """The gradient at one step of probabilities `p`, given what was seen before it."""
    steps = len(seen) + 1
    logits = torch.zeros(1, steps, len(p), dtype=torch.float64)
    logits[0, -1] = torch.tensor(p, dtype=torch.float64).log()
    targets = torch.tensor([[*seen, target]])
    return gradient(objective, way, logits, targets, strength, reduction="sum")[1][0, -1]


def probabilities(vocab):
    """Strictly positive, summing to one, sometimes far apart."""
    logits = st.lists(st.floats(-8, 8), min_size=vocab, max_size=vocab)
    return logits.map(lambda o: torch.tensor(o, dtype=torch.float64).softmax(0).tolist())


# ---- Equation 3: maximum likelihood ----------------------------------------------------------------------------------


@every_way
@both_objectives
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize(("shape", "vocab"), [((2, 7), 11), ((1, 40), 257), ((3, 1), 2)])
def test_equation_3_strength_zero_is_cross_entropy(objective, way, dtype, tolerance, shape, vocab):
    random = torch.Generator().manual_seed(3)
    logits = torch.randn(*shape, vocab, generator=random, dtype=dtype) * 3
    targets = torch.randint(0, vocab, shape, generator=random)
    targets[0, 0] = -100
    loss, grad = gradient(objective, way, logits, targets, MLE[objective])
    plain = logits.clone().requires_grad_()
    expected = F.cross_entropy(plain.flatten(0, 1), targets.flatten())
    expected.backward()
    assert abs(loss - expected.detach()) <= tolerance * expected
    assert (grad - plain.grad).norm() <= tolerance * plain.grad.norm()
    kept = targets != -100
    one_hot = F.one_hot(targets.clamp(min=0), vocab)
    p_minus_one = (logits.double().softmax(-1) - one_hot) * kept[..., None] / kept.sum()
    assert (grad.double() - p_minus_one).norm() <= tolerance * p_minus_one.norm()


# ---- Equations 4 to 6: ScaleGrad -------------------------------------------------------------------------------------

# p = (.1, .2, .3, .4), tokens 0 and 1 seen, γ = .5: γ·(.3 + .4) + .1 + .2 = .65, so λ = .5/.65 and α_i = 1/.65.


@every_way
@pytest.mark.parametrize(
    ("target", "token", "expected"),
    [
        pytest.param(2, 2, 0.5 / 0.65 * 0.3 - 1, id="T-N: λ·p − 1"),
        pytest.param(0, 0, 1 / 0.65 * 0.1 - 1, id="T-NN: α·p − 1"),
        pytest.param(2, 3, 0.5 / 0.65 * 0.4, id="NT-N: λ·p"),
        pytest.param(2, 1, 1 / 0.65 * 0.2, id="NT-NN: α·p"),
    ],
)
def test_equation_6_case(way, target, token, expected):
    grad = step("scale_grad", way, [0.1, 0.2, 0.3, 0.4], [0, 1], target, 0.5)
    assert grad[token].item() == pytest.approx(expected, abs=1e-14)


@every_way
def test_equation_6_first_step_is_mle(way):
    """Nothing was seen: p − 1[k] whatever γ, and the same for UL whatever α; so too where a document starts."""
    random = torch.Generator().manual_seed(6)
    logits = torch.randn(2, 5, 7, generator=random, dtype=torch.float64)
    targets = torch.tensor([[3, 2, 1, 3, 1], [0, 1, 2, 5, 5]])
    segments = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 4]])
    first = torch.tensor([[1, 0, 0, 1, 0], [1, 0, 0, 0, 1]], dtype=torch.bool)
    plain = logits.softmax(-1) - F.one_hot(targets, 7)
    for objective, strength in (("scale_grad", 0.1), ("unlikelihood", 2.0)):
        _, grad = gradient(objective, way, logits, targets, strength, segments=segments, reduction="sum")
        assert (grad - plain)[first].abs().max() < 1e-14
        assert (grad - plain)[~first].abs().amax(-1).min() > 1e-3  # and only there


@every_way
@QUICK
@given(seed=st.integers(0, 2**31), gamma=st.floats(1e-3, 1), smoothing=st.sampled_from([0.0, 0.3]))
def test_equation_6_gradients_sum_to_zero(way, seed, gamma, smoothing):
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 6, 5, generator=random, dtype=torch.float64) * 5
    targets = torch.randint(0, 5, (2, 6), generator=random)
    _, grad = gradient("scale_grad", way, logits, targets, gamma, label_smoothing=smoothing, reduction="sum")
    assert grad.sum(-1).abs().max() < 1e-14


@every_way
@QUICK
@given(p=probabilities(6), gamma=st.floats(1e-3, 1))
def test_equation_4_scales_are_bounded(way, p, gamma):
    """p̃ = λ·p on novel tokens with λ ∈ [γ, 1], and α_i·p on seen ones with α_i ∈ [1, 1/γ]."""
    seen, target = [0, 1, 2], 4
    grad = step("scale_grad", way, p, seen, target, gamma)
    scale = (grad + F.one_hot(torch.tensor(target), 6)) / torch.tensor(p, dtype=torch.float64)
    novel, slack = scale[3:], 1e-9 / min(p)  # adding 1 at the target loses digits of a small p
    assert novel.min() >= gamma - slack
    assert novel.max() <= 1 + slack
    assert scale[:3].min() >= 1 - slack
    assert scale[:3].max() <= 1 / gamma * (1 + 1e-9) + slack


@every_way
def test_equation_4_scales_reach_their_bounds(way):
    gamma, rest = 0.2, 1e-12
    mostly_seen = step("scale_grad", way, [1 - 2 * rest, rest, rest], [0], 1, gamma)
    assert mostly_seen[2].item() / rest == pytest.approx(gamma, rel=1e-6)  # λ → γ
    assert mostly_seen[0].item() == pytest.approx(1.0, rel=1e-6)  # α_i → 1
    mostly_novel = step("scale_grad", way, [rest, 1 - 2 * rest, rest], [0], 2, gamma)
    assert mostly_novel[1].item() == pytest.approx(1.0, rel=1e-6)  # λ → 1
    assert mostly_novel[0].item() / rest == pytest.approx(1 / gamma, rel=1e-6)  # α_i → 1/γ


@every_way
def test_gradient_norm_of_the_papers_figure(way):
    """Two tokens, one novel: each norm is monotone in p, and on the side of the MLE line that the paper draws."""
    grid = [i / 50 for i in range(1, 50)]
    lines = {"T-N": (1, 1), "T-NN": (0, 0), "NT-N": (0, 1), "NT-NN": (1, 0)}  # (target, token); 0 is seen, 1 novel
    norms = {}
    for name, (target, token) in lines.items():
        for strength in (0.2, 1.0):
            p = [[x, 1 - x] if token == 0 else [1 - x, x] for x in grid]
            grads = [step("scale_grad", way, pair, [0], target, strength)[token] for pair in p]
            norms[name, strength] = torch.stack(grads).abs()
    for (name, _), norm in norms.items():
        assert (norm.diff() < 0).all() if name.startswith("T-") else (norm.diff() > 0).all()
    assert (norms["T-N", 0.2] > norms["T-N", 1.0]).all()
    assert (norms["T-NN", 0.2] < norms["T-NN", 1.0]).all()
    assert (norms["NT-N", 0.2] < norms["NT-N", 1.0]).all()
    assert (norms["NT-NN", 0.2] > norms["NT-NN", 1.0]).all()
    x = torch.tensor(grid, dtype=torch.float64)
    assert torch.allclose(norms["T-N", 1.0], 1 - x, atol=1e-14)
    assert torch.allclose(norms["T-N", 0.2], 1 - 0.2 * x / (0.2 * x + 1 - x), atol=1e-14)
    assert torch.allclose(norms["NT-NN", 0.2], x / (0.2 * (1 - x) + x), atol=1e-14)


@QUICK
@given(p=probabilities(6), gamma=st.floats(0.01, 1), token=st.integers(0, 5), target=st.integers(0, 5))
def test_gradient_norm_is_monotone_in_p(p, gamma, token, target):
    """Raise one token's logit, so that its p rises: |p̃ − 1[k]| falls for the target and rises for any other."""
    norms = []
    for lift in (0.0, 0.5, 1.0, 2.0):
        weights = [x * math.exp(lift) if i == token else x for i, x in enumerate(p)]
        moved = [w / sum(weights) for w in weights]
        norms.append(step("scale_grad", ("logits", "sparse"), moved, [0, 1, 2], target, gamma)[token].abs().item())
    pairs = list(itertools.pairwise(norms))
    assert all(a > b for a, b in pairs) if token == target else all(a < b for a, b in pairs)


# ---- Equations 2 and 7: unlikelihood ---------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
@QUICK
@given(p=probabilities(5))
def test_equation_7_single_negative(way, alpha, p):
    """m_i·p_i − 1[i = k] with m = 1 − α·p_neg/(1 − p_neg), and 1 + α at the negative itself."""
    negative, target = 0, 3
    factor = 1 - alpha * p[negative] / math.fsum(p[1:])
    expected = [factor * x for x in p]
    expected[negative] = (1 + alpha) * p[negative]
    expected[target] -= 1
    grad = step("unlikelihood", way, p, [negative], target, alpha)
    assert grad.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@every_way
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_unlikelihood_factor_turns_negative_at_its_pole(way, alpha):
    """At p_neg = 1/(α + 1) a bystander's gradient is 0; beyond, the bystander is pushed up."""
    turn = 1 / (alpha + 1)

    def bystander(p_neg):
        rest = 1 - p_neg
        return step("unlikelihood", way, [p_neg, 0.4 * rest, 0.6 * rest], [0], 1, alpha)[2].item()

    assert bystander(turn) == pytest.approx(0, abs=1e-15)
    assert bystander(turn - 1e-6) > 1e-7
    assert bystander(turn + 1e-6) < -1e-7


def p_after_descent(grad, p, size=1e-4):
    return (torch.tensor(p, dtype=torch.float64).log() - size * grad).softmax(0)


@every_way
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_unlikelihood_beyond_the_turn_norm_and_descent_disagree(way, alpha):
    """The norm at the target grows with p_k, from which the paper infers that p_k falls; yet a small step raises it."""
    p_neg = 1 / (alpha + 1) + 0.1
    norms = []
    for share in (0.05, 0.2, 0.5, 0.8, 0.95):
        p = [p_neg, share * (1 - p_neg), (1 - share) * (1 - p_neg)]
        grad = step("unlikelihood", way, p, [0], 1, alpha)
        norms.append(grad[1].abs().item())
        assert p_after_descent(grad, p)[1] > p[1]
    assert all(a < b for a, b in itertools.pairwise(norms))
    assert norms[0] > 1


@QUICK
@given(p=probabilities(5), alpha=st.floats(0, 12))
def test_unlikelihood_step_raises_the_target_for_every_alpha_to_12(p, alpha):
    """The rate of p_k, p_k·(Σ p_j·g_j − g_k), is positive on any p as long as α ≤ 6 + √48 ≈ 12.9."""
    grad = step("unlikelihood", ("logits", "sparse"), p, [0], 3, alpha)
    assert (torch.tensor(p, dtype=torch.float64) @ grad - grad[3]).item() > 0


def test_unlikelihood_step_can_lower_the_target_for_a_huge_alpha():
    """So the paper's worry is real far beyond the α that anyone uses: the bystander is pushed up harder than k."""
    p = [0.2, 0.01, 0.79]
    grad = step("unlikelihood", ("logits", "sparse"), p, [0], 1, 100.0)
    assert p_after_descent(grad, p)[1] < p[1]


@every_way
@pytest.mark.parametrize("lead", [math.log(1e7), 20.0, 40.0, 60.0, 80.0], ids=lambda lead: f"{lead:.0f} nats")
@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_unlikelihood_gradient_near_certainty_in_float32(way, lead, alpha):
    """A discouraged token has p = 1 − 1e-7, or leads the rest by up to 80 nats: exact to 1e-5, nothing clamped."""
    random = torch.Generator().manual_seed(7)
    logits = torch.randn(1, 3, 9, generator=random)
    rest = logits[0, 2, [0, *range(2, 9)]].logsumexp(0)
    logits[0, 2, 1] = rest + lead  # token 1, seen at step 1
    targets = torch.tensor([[0, 1, 4]])
    loss, grad = gradient("unlikelihood", way, logits, targets, alpha, reduction="none")
    expected, exact = oracles.unlikelihood(logits[0, 2].double().tolist(), 4, {0, 1}, alpha)
    assert loss[0, 2].item() == pytest.approx(expected, rel=1e-5)
    assert grad[0, 2].tolist() == pytest.approx(exact, rel=1e-5, abs=1e-5)
    assert grad[0, 2, 4].item() < -1.0  # the target is pulled up by more than MLE would
    bystander = grad[0, 2, 5].item()
    assert bystander == pytest.approx(exact[5], rel=1e-5)  # relative: it is not small
    assert bystander < -1e-3


# ---- the optimum -----------------------------------------------------------------------------------------------------


def test_tabular_model_ends_at_the_decoding_time_twin():
    """One logit row for each prefix, V = 4, T = 3, minimised on a known q: p = softmax(log q + log γ · 1[seen])."""
    vocab, steps, gamma = 4, 3, 0.2
    random = torch.Generator().manual_seed(5)
    sequences = torch.tensor(list(itertools.product(range(vocab), repeat=steps)))  # [64, 3]
    code = sequences[:, 0] * vocab + sequences[:, 1]
    prefix = torch.stack([torch.zeros(64, dtype=torch.int64), 1 + sequences[:, 0], 1 + vocab + code], 1)  # [64, 3]
    q = torch.randn(1 + vocab + vocab**2, vocab, generator=random, dtype=torch.float64).softmax(-1)
    weight = q[prefix, sequences].prod(1, keepdim=True)  # q(y), exactly: no sampling
    assert weight.sum().item() == pytest.approx(1)

    table = torch.zeros_like(q).requires_grad_()
    optimizer = torch.optim.LBFGS([table], lr=1, max_iter=400, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (SF.scale_grad(table[prefix], sequences, gamma, reduction="none") * weight).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    seen = torch.zeros_like(q)  # by hand: nothing at the root, one token after one, one or two after two
    for first in range(vocab):
        seen[1 + first, first] = 1
        for second in range(vocab):
            seen[1 + vocab + first * vocab + second, [first, second]] = 1
    twin = (q.log() + math.log(gamma) * seen).softmax(-1)
    assert (table.detach().softmax(-1) - twin).abs().max() < 1e-3
    assert (twin - q).abs().max() > 0.1  # which is not what MLE would learn
