"""Random batches of every kind people train on, for property tests."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st
from tests import oracles

from scalegrad import functional as SF
from scalegrad.sets import Ids, NgramRepeat, Seen

IGNORED = -100


@dataclass
class Case:
    """A call of a loss, with the oracle's answer to it."""

    logits: torch.Tensor  # [R, T, V] float64
    targets: torch.Tensor
    token_set: object
    objective: str
    strength: torch.Tensor  # [R, T]
    per_position: bool
    data: dict = field(default_factory=dict)  # context, source, segments
    settings: dict = field(default_factory=dict)  # label_smoothing, softcap, logit_scale

    def expected(self, logits=None):
        """Per row: loss [R, T], gradient of its sum [R, T, V], nll, mass, target in C."""
        logits = self.logits if logits is None else logits.double()
        rows, steps, vocab = logits.shape
        loss, nll, mass = (torch.zeros(rows, steps, dtype=torch.float64) for _ in range(3))
        grad = torch.zeros(rows, steps, vocab, dtype=torch.float64)
        seen = torch.zeros(rows, steps, dtype=torch.bool)
        for r in range(rows):
            data = {k: v[r].tolist() for k, v in self.data.items()}
            answer = oracles.sequence(
                logits[r].tolist(),
                self.targets[r].tolist(),
                self.token_set,
                self.strength[r].tolist(),
                self.objective,
                smoothing=self.settings.get("label_smoothing", 0.0),
                softcap=self.settings.get("softcap"),
                scale=self.settings.get("logit_scale"),
                **data,
            )
            for t, step in enumerate(answer):
                if step is not None:
                    loss[r, t], nll[r, t], mass[r, t], seen[r, t] = step[0], step[2], step[3], step[4]
                    grad[r, t] = torch.tensor(step[1], dtype=torch.float64)
        return loss, grad, nll, mass, seen

    def run(self, logits, impl, **more):
        """Our loss on these logits."""
        name = {"scale_grad": SF.scale_grad, "unlikelihood": SF.unlikelihood}[self.objective]
        return name(
            logits,
            self.targets,
            self._strength(),
            discourage=self.token_set,
            impl=impl,
            **self.data,
            **self.settings,
            **more,
        )

    def run_linear(self, hidden, weight, impl, **more):
        name = {"scale_grad": SF.linear_scale_grad, "unlikelihood": SF.linear_unlikelihood}[self.objective]
        return name(
            hidden,
            weight,
            self.targets,
            self._strength(),
            discourage=self.token_set,
            impl=impl,
            **self.data,
            **self.settings,
            **more,
        )

    def _strength(self):
        return self.strength if self.per_position else float(self.strength.flatten()[0])


def token_sets(vocab, *, complements=True):
    exempt = st.lists(st.integers(0, vocab + 2), max_size=2)
    simple = st.one_of(
        st.builds(Seen, exempt=exempt),
        st.builds(Seen, window=st.integers(1, 8), exempt=exempt),
        st.builds(Ids, st.lists(st.integers(0, vocab - 1), max_size=4), exempt=exempt),
        st.builds(NgramRepeat, st.integers(1, 4), exempt=exempt),
    )
    pair = st.tuples(simple, simple)
    combined = st.one_of(pair.map(lambda p: p[0] & p[1]), pair.map(lambda p: p[0] | p[1]))
    if complements:
        inverted = st.one_of(
            simple.map(lambda a: ~a), pair.map(lambda p: p[0] & ~p[1]), pair.map(lambda p: ~(p[0] | ~p[1]))
        )
        return st.one_of(simple, combined, inverted)
    return st.one_of(simple, combined, pair.map(lambda p: p[0] & ~p[1]))


@st.composite
def cases(draw, objective, *, complements=True, spread=(0.1, 3.0, 30.0), smoothing=True, head=True):
    rows, steps = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    vocab = draw(st.sampled_from([2, 3, 5, 8, 13]))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def ids(*shape, low=0):
        return torch.randint(low, vocab, shape, generator=random)

    logits = torch.randn(rows, steps, vocab, generator=random, dtype=torch.float64) * draw(st.sampled_from(spread))
    targets = ids(rows, steps)
    padding = draw(st.sampled_from(["none", "left", "right", "middle", "all"]))
    lengths = torch.randint(0, steps + 1, (rows, 1), generator=random)
    place = torch.arange(steps)
    if padding in ("left", "right"):
        targets[place < lengths if padding == "left" else place >= lengths] = IGNORED
    elif padding == "middle":
        targets[torch.rand(rows, steps, generator=random) < 0.3] = IGNORED
    elif padding == "all":
        targets[:] = IGNORED

    data = {}
    if draw(st.booleans()):
        data["segments"] = torch.randint(0, 2, (rows, steps), generator=random).cumsum(1) % 3
    if draw(st.booleans()):
        data["context"] = ids(rows, steps, low=-2)
    if draw(st.booleans()):
        data["source"] = ids(rows, draw(st.integers(0, 4)), low=-1)
    settings = {}
    if smoothing and draw(st.booleans()):
        settings["label_smoothing"] = draw(st.sampled_from([0.1, 1.0]))
    if head and draw(st.booleans()):
        settings["softcap"] = draw(st.sampled_from([5.0, 30.0]))
    if head and draw(st.booleans()):
        settings["logit_scale"] = draw(st.sampled_from([0.5, 2.0]))

    per_position = objective == "scale_grad" and draw(st.booleans())
    if objective == "scale_grad":
        strength = torch.rand(rows, steps, generator=random, dtype=torch.float64) * 0.99 + 0.01
        if not per_position:
            strength[:] = draw(st.sampled_from([1.0, 0.8, 0.2, 0.01]))
    else:
        strength = torch.full((rows, steps), draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])), dtype=torch.float64)
    token_set = draw(token_sets(vocab, complements=complements))
    return Case(logits, targets, token_set, objective, strength, per_position, data, settings)
