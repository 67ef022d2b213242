"""Is this machine ready? What it has, what is installed, and whether the losses compute here what they should."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from scalegrad import functional as SF
from scalegrad._hub import hub_host, hub_problem
from scalegrad._memory import free_memory
from scalegrad._version import __version__
from scalegrad.extras import need
from scalegrad.ops.dispatch import why_not_triton
from scalegrad.runs import hardware

State = Literal["ok", "absent", "wrong"]

_EXTRAS = {  # what a user wants to do, by the extra that brings it
    "cli": "the command line", "plots": "plots", "measure": "repetition of a file of texts",
    "moverscore": "MoverScore", "hf": "Hugging Face models",
    "complete": "continuations", "train": "training", "demo": "the demonstration", "report": "reports and plots",
    "gguf": "GGUF files", "trl": "TRL's trainer", "summarize": "summaries", "caption": "image paragraphs",
    "paper": "the paper's tables", "study": "human studies", "kernels": "kernels for NVIDIA GPUs",
    "benchmarks": "speed, beside others",
}  # fmt: skip
_GB = 1e9
_BASE_CHECKSUM = "ed1292e4cffe576e"  # of the shipped model's weights, by `weights_checksum`


@dataclass(frozen=True)
class Finding:
    """One thing looked at: fine, not there (which may be meant), or wrong."""

    part: str  # "machine", "extras", "losses", "shipped"
    name: str
    state: State
    said: str


def findings() -> Iterator[Finding]:
    """Everything there is to say of this machine, part by part."""
    yield from machine()
    yield from extras()
    yield from losses()
    yield from shipped()


# ---- the machine -----------------------------------------------------------------------------------------------------


def machine() -> Iterator[Finding]:
    """Versions, processors, memory, disk, and whether the hub answers."""

    def fine(name: str, said: str) -> Finding:
        return Finding("machine", name, "ok", said)

    yield fine("versions", f"scalegrad {__version__}, Python {platform.python_version()}, torch {torch.__version__}")
    memory = free_memory(torch.device("cpu")) / _GB
    yield fine("processor", f"{hardware()}; {memory:.0f} GB of memory free")
    yield from _gpus()
    yield fine("disk", f"{shutil.disk_usage('.').free / _GB:.0f} GB free in this folder")
    yield _hub()


def _gpus() -> Iterator[Finding]:
    if not torch.cuda.is_available():
        said = "none that torch sees: everything runs on the processor, training slowly"
        yield Finding("machine", "GPU", "absent", said)
        return
    for number in range(torch.cuda.device_count()):
        free, whole = torch.cuda.mem_get_info(number)
        with torch.cuda.device(number):
            own = torch.cuda.is_bf16_supported(including_emulation=False)
        precision = "bf16" if own else "no bf16: fp32 by default"
        said = f"{torch.cuda.get_device_name(number)}, {free / _GB:.0f} of {whole / _GB:.0f} GB free, {precision}"
        yield Finding("machine", f"GPU {number}", "ok", said)


def _hub() -> Finding:
    problem = hub_problem()
    if problem is None:
        return Finding("machine", "hub", "ok", f"{hub_host()}: models and data can be named as they are there")
    return Finding("machine", "hub", "absent", f"{problem}: models by folder, file or from the cache")


# ---- what is installed -----------------------------------------------------------------------------------------------


def extras(requirements: Sequence[str] | None = None) -> Iterator[Finding]:
    """Each extra: there, or what it lacks; `requirements` are scalegrad's own by default.

    >>> [(one.state, one.said) for one in extras(['no-such-package>=1; extra == "gguf"'])]
    [('absent', 'GGUF files: no-such-package is not installed; pip install "scalegrad[gguf]"')]
    """
    parse = need("packaging.requirements", extra="cli").Requirement
    if requirements is None:
        try:
            requirements = importlib.metadata.requires("scalegrad") or []
        except importlib.metadata.PackageNotFoundError:
            yield Finding("extras", "scalegrad", "absent", "used from its source, not installed: extras are not known")
            return
    parsed = [parse(text) for text in requirements]
    for extra, purpose in _EXTRAS.items():
        if not any(_of_extra(one, extra) for one in parsed):
            continue
        lacking = list(dict.fromkeys(_lacking(parsed, extra)))
        if lacking:
            said = f'{purpose}: {"; ".join(lacking)}; pip install "scalegrad[{extra}]"'
            yield Finding("extras", extra, "absent", said)
        else:
            yield Finding("extras", extra, "ok", purpose)


def _of_extra(requirement: Any, extra: str) -> bool:
    """Whether it is one of the extra's own, on a system like this one."""
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


def _lacking(parsed: Sequence[Any], extra: str) -> Iterator[str]:
    """What an extra needs, those that it names itself included, and does not find in a version it can use."""
    for one in parsed:
        if not _of_extra(one, extra):
            continue
        if one.name == "scalegrad":
            for inner in one.extras:
                yield from _lacking(parsed, inner)
            continue
        try:
            version = importlib.metadata.version(one.name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{one.name} is not installed"
        else:
            if not one.specifier.contains(version, prereleases=True):
                yield f"{one.name} is {version}, expected {one.specifier}"


# ---- the losses ------------------------------------------------------------------------------------------------------

_BOUND = 2e-5  # float32, of the largest value
_BOUND_TF32 = 5e-3  # matrix products on a GPU may round their factors


def losses() -> Iterator[Finding]:
    """Every implementation that runs here against the reference in float64: loss and gradient."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for impl in ("sparse", "chunked"):
        yield Finding("losses", impl, *_judged(impl, device))
    cannot = why_not_triton(torch.empty(0, device=device))
    if cannot:
        yield Finding("losses", "triton", "absent", f"{cannot}: sparse and chunked do their work")
    else:
        yield Finding("losses", "triton", *_judged("triton", device))


def _judged(impl: str, device: torch.device) -> tuple[State, str]:
    try:
        found = list(_errors(impl, device))
    except Exception as failure:  # whatever it is, it is what the user came to hear
        return "wrong", f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"
    beyond = [(error, bound) for error, bound in found if not error <= bound]  # NaN is beyond any
    error, bound = max(beyond or found)
    said = f"ScaleGrad and unlikelihood differ from the reference by {error:.0e} at most"
    return ("wrong", f"{said}, allowed is {bound:.0e}") if beyond else ("ok", said)


def _errors(impl: str, device: torch.device) -> Iterator[tuple[float, float]]:
    """(error, what is allowed) of losses and gradients, over the largest gradient, on a batch with ignored targets."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(0, 257, (3, 40), generator=generator)
    targets[1, 30:] = -100
    hidden, weight = torch.randn(3, 40, 16, generator=generator), torch.randn(257, 16, generator=generator) / 4
    forms: list[tuple[Sequence[Any], tuple[Tensor, ...], float]] = []
    if impl != "chunked":
        forms.append(((SF.scale_grad, SF.unlikelihood), (hidden @ weight.T,), _BOUND))
    if impl != "sparse":
        bound = _BOUND if device.type == "cpu" else _BOUND_TF32
        forms.append(((SF.linear_scale_grad, SF.linear_unlikelihood), (hidden, weight), bound))
    for functions, inputs, bound in forms:
        for function, strength in zip(functions, (0.2, 1.0), strict=True):
            exact = _results(function, [x.double() for x in inputs], targets, strength, "reference")
            found = _results(function, [x.to(device) for x in inputs], targets.to(device), strength, impl)
            for one, other in zip(exact, found, strict=True):
                yield float((one - other.cpu().double()).abs().max() / one.abs().max()), bound


def _results(function: Any, inputs: Sequence[Tensor], targets: Tensor, strength: float, impl: str) -> list[Tensor]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    loss = function(*leaves, targets, strength, impl=impl)
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


# ---- what is shipped -------------------------------------------------------------------------------------------------


def shipped() -> Iterator[Finding]:
    """The embedded texts, and the small model that the demonstration starts from."""
    try:
        from scalegrad.data import wikitext2, wikitext103

        words = sum(len(text.split()) for text in (wikitext103("valid"), wikitext103("test"), wikitext2()))
        yield Finding("shipped", "texts", "ok", f"WikiText: {words:,} words")
        from scalegrad.decoding import generate, load
        from scalegrad.models import base
        from scalegrad.models.pretrained import weights_checksum

        model, tokenizer = load(base.NAME, "cpu")
        if weights_checksum(model) != _BASE_CHECKSUM:
            raise ValueError("the weights of the shipped model are not those it was shipped with")
        written = generate(model, [tokenizer("The river")["input_ids"]], new_tokens=8, min_new_tokens=8)
        yield Finding("shipped", "model", "ok", f"“The river{tokenizer.decode(written[0])} …”")
    except ImportError as missing:
        yield Finding("shipped", "model", "absent", str(missing))
    except (OSError, ValueError, RuntimeError) as failure:
        yield Finding("shipped", "files", "wrong", f"{failure}; install scalegrad again")
