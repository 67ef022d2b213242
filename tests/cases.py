"""Random batches of every kind people train on, for property tests."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from scalegrad.sets import Ids, NgramRepeat, Seen
from tests.case import IGNORED, Case


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
