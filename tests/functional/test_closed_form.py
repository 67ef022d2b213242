"""ScaleGrad as MLE plus a bounded penalty: each statement of docs/math.md that the paper does not make."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scalegrad import functional as SF

MANY = settings(max_examples=60, deadline=None)
gammas = st.floats(0.01, 1.0)
seeds = st.integers(0, 2**31)


def random_batch(seed, vocab=7, steps=9):
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, steps, vocab, generator=random, dtype=torch.float64) * 3
    return logits.requires_grad_(), torch.randint(vocab, (2, steps), generator=random)


def seen_mask(targets, vocab):
    """1 where a token stands among the targets before the step."""
    mask = torch.zeros(*targets.shape, vocab, dtype=torch.float64)
    for r, t in itertools.product(*map(range, targets.shape)):
        mask[r, t, targets[r, :t]] = 1
    return mask


@MANY
@given(seeds, gammas)
def test_loss_is_cross_entropy_plus_penalty_less_a_constant_of_seen_targets(seed, gamma):
    logits, targets = random_batch(seed)
    loss, parts = SF.scale_grad(logits, targets, gamma, reduction="none", return_parts=True)
    penalty = torch.log(1 + (1 / gamma - 1) * parts.seen_mass)
    expected = parts.nll + penalty - math.log(1 / gamma) * parts.target_seen.double()
    torch.testing.assert_close(loss.detach(), expected, rtol=1e-12, atol=1e-12)
    assert bool(((penalty >= -1e-15) & (penalty <= math.log(1 / gamma) + 1e-12)).all())


@MANY
@given(seeds, gammas)
def test_shifting_the_seen_logits_up_is_the_same_as_shifting_the_novel_ones_down(seed, gamma):
    logits, targets = random_batch(seed)
    mask = seen_mask(targets, logits.shape[-1])
    up = (logits + math.log(1 / gamma) * mask).log_softmax(-1)
    down = (logits + math.log(gamma) * (1 - mask)).log_softmax(-1)
    loss = SF.scale_grad(logits, targets, gamma, reduction="none")
    for log_p in (up, down):
        torch.testing.assert_close(loss, -log_p.gather(-1, targets[..., None])[..., 0], rtol=1e-12, atol=1e-12)


@MANY
@given(seeds, gammas)
def test_penalty_pushes_the_same_way_whatever_the_target(seed, gamma):
    """∇SG − ∇CE = (1/γ − 1)·p·(1[C] − π) / (1 + (1/γ − 1)·π): the target does not occur in it."""
    logits, targets = random_batch(seed)
    mask = seen_mask(targets, logits.shape[-1])
    (gradient,) = torch.autograd.grad(SF.scale_grad(logits, targets, gamma, reduction="sum"), logits)
    p = logits.detach().softmax(-1)
    one_hot = torch.nn.functional.one_hot(targets, logits.shape[-1])
    pi = (p * mask).sum(-1, keepdim=True)
    expected = (1 / gamma - 1) * p * (mask - pi) / (1 + (1 / gamma - 1) * pi)
    torch.testing.assert_close(gradient - (p - one_hot), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.01, 0.2, 0.5, 0.8])
def test_push_on_all_seen_tokens_together_is_bounded(gamma):
    """Over all π the penalty's gradient on C sums to at most (1 − √γ)/(1 + √γ), reached at π = √γ/(1 + √γ)."""
    root = math.sqrt(gamma)
    pi = torch.cat([torch.linspace(0.001, 0.999, 999), torch.tensor([root / (1 + root)])]).double()
    logits = torch.stack([torch.zeros(1000, 2, dtype=torch.float64), torch.stack([pi.log(), (1 - pi).log()], 1)], 1)
    logits = logits.requires_grad_()
    targets = torch.tensor([[0, 1]]).expand(1000, 2)
    (gradient,) = torch.autograd.grad(SF.scale_grad(logits, targets, gamma, reduction="sum"), logits)
    push = gradient[:, 1, 0] - pi  # less MLE's
    bound = (1 - root) / (1 + root)
    assert push.max().item() <= bound + 1e-12
    assert push[-1].item() == pytest.approx(bound, abs=1e-12)


@MANY
@given(seeds, st.sampled_from([0.25, 0.5, 1.0, 1.5, 4.0]))
def test_unlikelihoods_push_on_its_candidates_is_at_most_alpha(seed, alpha):
    """Σ_{C∖k} (∇UL − ∇CE) = α·R·(1 − Σ p_c) ≤ α·Σ p_c: bounded, although the loss itself is not."""
    logits, targets = random_batch(seed)
    (gradient,) = torch.autograd.grad(SF.unlikelihood(logits, targets, alpha, reduction="sum"), logits)
    p = logits.detach().softmax(-1)
    one_hot = torch.nn.functional.one_hot(targets, logits.shape[-1])
    candidates = seen_mask(targets, logits.shape[-1]) * (1 - one_hot)
    push = ((gradient - p + one_hot) * candidates).sum(-1)
    mass = (p * candidates).sum(-1)
    expected = alpha * (p / (1 - p) * candidates).sum(-1) * (1 - mass)
    torch.testing.assert_close(push, expected, rtol=1e-8, atol=1e-10)
    assert bool((push <= alpha * mass + 1e-10).all())


@MANY
@given(seeds, gammas)
def test_scaled_distribution_sums_to_one_so_its_perplexity_is_one(seed, gamma):
    """exp(−loss) over every possible target of a step is a distribution: exp(mean loss) is a perplexity."""
    logits, targets = random_batch(seed, vocab=5)
    total = torch.zeros(2, dtype=torch.float64)
    for last in range(5):
        targets[:, -1] = last
        total += SF.scale_grad(logits, targets, gamma, reduction="none")[:, -1].detach().neg().exp()
    torch.testing.assert_close(total, torch.ones(2, dtype=torch.float64), rtol=1e-12, atol=0)


@MANY
@given(seeds, gammas)
def test_scaling_undoes_the_twin(seed, gamma):
    """If p = softmax(log q + log γ·1[seen]), the scaled p̃ is q: the loss is the cross-entropy of q, its minimum."""
    log_q, targets = random_batch(seed)
    log_q = log_q.detach().log_softmax(-1)
    logits = (log_q + math.log(gamma) * seen_mask(targets, log_q.shape[-1])).requires_grad_()
    loss = SF.scale_grad(logits, targets, gamma, reduction="none")
    torch.testing.assert_close(loss, -log_q.gather(-1, targets[..., None])[..., 0], rtol=1e-10, atol=1e-12)
