"""300 random loss calls, seeded: a program that prints each call's value and gradients as JSON."""

from __future__ import annotations

import json
import random
from typing import Any

CALLS, SEED = 300, 19


def fingerprint(tensor: Any) -> dict[str, Any]:
    """A checksum that depends on every entry and its place, and a few entries themselves."""
    import torch

    flat = tensor.detach().double().flatten()
    weights = torch.cos(torch.arange(1, flat.numel() + 1, dtype=torch.float64))
    entries = flat[:: max(1, flat.numel() // 3)][:3].tolist()
    checksum = f"{float((flat * weights).sum()):.12g}"
    return {"shape": list(tensor.shape), "checksum": checksum, "entries": [f"{entry:.12g}" for entry in entries]}


def token_set(chance: random.Random, vocab: int, compact: bool) -> Any:
    """A set of any kind; with `compact` none that only the reference implementation can run."""
    from scalegrad.sets import Ids, NgramRepeat, Seen

    def simple() -> Any:
        exempt = chance.sample(range(vocab), chance.randrange(3))
        kind = chance.choice(["seen", "window", "ids", "ngram"])
        if kind == "ids":
            return Ids(chance.sample(range(vocab), min(vocab, 3)), exempt=exempt)
        if kind == "ngram":
            return NgramRepeat(chance.randint(1, 3), exempt=exempt)
        return Seen(window=chance.randint(1, 6) if kind == "window" else None, exempt=exempt)

    one, two = simple(), simple()
    combined = [one, one, one, one & two, one | two, one & ~two]
    return chance.choice(combined if compact else [*combined, ~one, ~(one | two)])


def call(number: int) -> dict[str, Any]:
    """Make the call with this number and record what it gives; an error is recorded by its type."""
    import torch

    from scalegrad import ScaleGradLoss, UnlikelihoodLoss, functional

    chance, generator = random.Random(SEED * 1000 + number), torch.Generator().manual_seed(number)
    vocab = chance.choice([2, 5, 13, 50, 301])
    lead = chance.choice([(1, 7), (2, 5), (3, 12), (2, 2, 4), (1, 1)])
    dtype = chance.choice([torch.float64, torch.float64, torch.float32, torch.float32, torch.bfloat16, torch.float16])
    linear, scales = chance.random() < 0.5, chance.random() < 0.5

    def ids(*shape: int, low: int = 0) -> Any:
        return torch.randint(low, vocab, shape, generator=generator)

    def floats(*shape: int) -> Any:
        values = torch.randn(*shape, generator=generator, dtype=torch.float64) * chance.choice([0.3, 1.0, 4.0])
        return values.to(dtype).requires_grad_()

    targets = ids(*lead)
    targets[torch.rand(lead, generator=generator) < chance.choice([0, 0, 0.2])] = -100
    impl = chance.choice(["auto", "reference", "chunked" if linear else "sparse"])
    options: dict[str, Any] = {"discourage": token_set(chance, vocab, impl != "reference"), "impl": impl}
    options["reduction"] = chance.choice(["mean", "mean", "sum", "none"])
    for name, values in (("label_smoothing", (0.1, 1.0)), ("softcap", (5.0, 30.0)), ("logit_scale", (0.5, 2.0))):
        if chance.random() < 0.3:
            options[name] = chance.choice(values)
    options |= {"return_parts": chance.random() < 0.3, "check": chance.random() < 0.2}
    batch: dict[str, Any] = {}
    if chance.random() < 0.35:
        batch["context"] = ids(*lead, low=-1)
    if chance.random() < 0.35:
        batch["source"] = ids(*lead[:-1], chance.randint(0, 5), low=-1)
    if chance.random() < 0.35:
        batch["segments"] = torch.randint(0, 2, lead, generator=generator).cumsum(-1)
    if options["reduction"] == "mean" and chance.random() < 0.3:
        batch["num_items"] = chance.choice([4, 100, torch.tensor(9)])
    if linear:
        inputs = {"hidden": floats(*lead, 6), "weight": floats(vocab, 6)}
        if chance.random() < 0.5:
            batch["bias"] = inputs["bias"] = floats(vocab)
    else:
        inputs = {"logits": floats(*lead, vocab)}
    strength: Any = chance.choice([1.0, 0.8, 0.2, 0.01] if scales else [0.0, 0.5, 1.0, 3.0])
    if scales and chance.random() < 0.3:
        strength = torch.rand(lead, generator=generator, dtype=torch.float64) * 0.9 + 0.05
    elif scales and chance.random() < 0.2:
        strength = lambda position, entropy, seen_mass: 1 / (1.5 + position + entropy + seen_mass)  # noqa: E731

    first = [inputs["hidden"], inputs["weight"]] if linear else [inputs["logits"]]
    name = ("linear_" if linear else "") + ("scale_grad" if scales else "unlikelihood")
    as_module = chance.random() < 0.3
    described = {"name": name, "impl": impl, "dtype": str(dtype), "shape": [*lead, vocab], "module": as_module}
    try:
        if as_module:
            module = (ScaleGradLoss if scales else UnlikelihoodLoss)(strength, **options)
            value = (module.linear if linear else module)(*first, targets, **batch)
        else:
            value = getattr(functional, name)(*first, targets, strength, **batch, **options)
    except ValueError as error:
        return described | {"error": type(error).__name__}
    value, parts = value if options["return_parts"] else (value, ())
    (value * torch.linspace(1, 2, value.numel(), dtype=value.dtype).view_as(value)).sum().backward()
    described |= {"value": fingerprint(value), "parts": [fingerprint(part) for part in parts]}
    return described | {f"gradient of {name}": fingerprint(one.grad) for name, one in inputs.items()}


def main() -> None:
    import torch

    import scalegrad

    torch.set_num_threads(1)
    print(json.dumps({"imported": scalegrad.__file__, "calls": [call(number) for number in range(CALLS)]}))


if __name__ == "__main__":
    main()
