"""Float64 loops in plain Python that share no code with what they check: slow, obvious, and the judge of every loss."""

from __future__ import annotations

import math


def log_sum_exp(values):
    top = max(values)
    if top == -math.inf:
        return -math.inf
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


# ---- which tokens are discouraged ------------------------------------------------------------------------------------


def readable(targets, step, *, context=None, segments=None, ignored=-100):
    """What step `step` may read of its own document, in order; None for a place that counts for nothing."""
    first = step
    while first > 0 and (segments is None or segments[first - 1] == segments[step]):
        first -= 1
    if context is not None:
        return [i if i >= 0 else None for i in context[first : step + 1]]
    return [None if i == ignored else i for i in targets[first:step]]


def discouraged(token_set, document, source, vocab):
    """C_t as a Python set of ids."""
    kind = type(token_set).__name__
    if kind == "Seen":
        recent = document if token_set.window is None else document[-token_set.window :]
        found = {i for i in recent if i is not None} | {i for i in source if i >= 0}
    elif kind == "Ids":
        found = set(token_set.ids)
    elif kind == "NgramRepeat":
        found = repeats(token_set.n, document, source)
    elif kind == "Both":
        found = discouraged(token_set.a, document, source, vocab) & discouraged(token_set.b, document, source, vocab)
    elif kind == "Either":
        found = discouraged(token_set.a, document, source, vocab) | discouraged(token_set.b, document, source, vocab)
    elif kind == "Not":
        found = set(range(vocab)) - discouraged(token_set.a, document, source, vocab)
    else:
        raise AssertionError(kind)
    return found - set(token_set.exempt)


def repeats(n, document, source):
    ending = document[len(document) - (n - 1) :] if n > 1 else []
    if len(ending) < n - 1 or None in ending:
        return set()
    found = set()
    for text in (document, [i if i >= 0 else None for i in source]):
        for i in range(len(text) - n + 1):
            gram = text[i : i + n]
            if None not in gram and gram[:-1] == ending:
                found.add(gram[-1])
    return found


# ---- the losses of one step ------------------------------------------------------------------------------------------


def head(logits, softcap=None, scale=None):
    """The logits after scale and cap, and their derivatives."""
    out, slope = [], []
    for o in logits:
        x, d = (o, 1.0) if scale is None else (o * scale, scale)
        if softcap is not None:
            t = math.tanh(x / softcap)
            x, d = softcap * t, d * (1 - t * t)
        out.append(x)
        slope.append(d)
    return out, slope


def scale_grad(o, target, found, gamma, smoothing=0.0):
    """(loss, gradient): Eq. 4 and 5 on one step."""
    vocab = len(o)
    scaled = [x if i in found else x + math.log(gamma) for i, x in enumerate(o)]
    total = log_sum_exp(scaled)
    q = [smoothing / vocab + (1 - smoothing) * (i == target) for i in range(vocab)]
    loss = math.fsum(w * (total - x) for w, x in zip(q, scaled, strict=True) if w)
    return loss, [math.exp(x - total) - w for x, w in zip(scaled, q, strict=True)]


def unlikelihood(o, target, found, alpha, smoothing=0.0):
    """(loss, gradient): Eq. 2 on one step. ∂ log(1 − p_c)/∂o_j = softmax of the others at j − p_j."""
    vocab = len(o)
    total = log_sum_exp(o)
    p = [math.exp(x - total) for x in o]
    q = [smoothing / vocab + (1 - smoothing) * (i == target) for i in range(vocab)]
    loss = math.fsum(w * (total - x) for w, x in zip(q, o, strict=True) if w)
    grad = [[a - b] for a, b in zip(p, q, strict=True)]
    for c in sorted(found - {target}):
        others = log_sum_exp([x for i, x in enumerate(o) if i != c])
        loss -= alpha * (others - total)
        for j in range(vocab):
            rest = 0.0 if j == c else math.exp(o[j] - others)
            grad[j].append(-alpha * (rest - p[j]))
    return loss, [math.fsum(terms) for terms in grad]


def sequence(
    logits,
    targets,
    token_set,
    strength,
    objective,
    *,
    context=None,
    source=None,
    segments=None,
    ignored=-100,
    smoothing=0.0,
    softcap=None,
    scale=None,
):
    """One row: lists [T] of (loss, gradient [V], nll, mass on C, target in C), None at ignored targets."""
    out = []
    for step, target in enumerate(targets):
        if target == ignored:
            out.append(None)
            continue
        o, slope = head(logits[step], softcap, scale)
        document = readable(targets, step, context=context, segments=segments, ignored=ignored)
        found = discouraged(token_set, document, [] if source is None else source, len(o))
        rule = scale_grad if objective == "scale_grad" else unlikelihood
        loss, grad = rule(o, target, found, strength[step], smoothing)
        total = log_sum_exp(o)
        mass = math.fsum(math.exp(o[i] - total) for i in found)
        out.append((loss, [g * d for g, d in zip(grad, slope, strict=True)], total - o[target], mass, target in found))
    return out
