"""A training step of a GPT-2-shaped model with three losses: the framework's own, our cross-entropy, ScaleGrad."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.cases import Batch, Case, make_batch
from benchmarks.clock import Clock, Contender
from benchmarks.exact import Outcome, exact_answers, judge
from benchmarks.losses import Settings, our_losses
from benchmarks.runner import Row, Skipped, compare
from scalegrad.extras import need

LOSS_TOLERANCE = 0.005  # relative; gradients of the same losses are checked in the cases without a model
NAMES = ("CE framework", "CE scalegrad", "SG scalegrad")


def measure_step(case: Case, settings: Settings, clock: Clock) -> list[Row]:
    """Forward, loss, backward and AdamW in bf16 autocast.

    The learning rate is 0: every step does the same work on the same weights.
    """
    try:
        importlib.import_module("transformers")
    except ModuleNotFoundError:
        return [Skipped(name, "transformers is not installed") for name in NAMES]
    model = gpt2_shaped(case, clock.device)
    ids = make_batch(case, clock.device).targets
    losses = _losses(model, ids, settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=clock.device == "cuda")

    def contender(name: str, loss: Callable[[], Tensor]) -> Contender:
        def run() -> Outcome:
            with torch.autocast(clock.device, dtype=case.dtype):
                value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            return Outcome(value, ())

        def prepare() -> tuple[Any, ...]:
            optimizer.zero_grad(set_to_none=True)
            return ()

        return Contender(name, run, prepare)

    return compare(
        [contender(name, losses[name]) for name in NAMES],
        clock,
        check=_checker(model, ids, case, clock.device),
        rounds=settings.rounds,
        patience=4 * settings.patience,  # what must be seen is a hundredth
    )


def gpt2_shaped(case: Case, device: str) -> Any:
    """At width 768, GPT-2 small; dropout off, so that every contender computes the same."""
    transformers = need("transformers", extra="hf")
    blocks = max(1, case.width // 64)
    config = transformers.GPT2Config(
        vocab_size=case.vocab,
        n_positions=case.steps,
        n_embd=case.width,
        n_layer=blocks,
        n_head=blocks,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).to(device).train()
    model.loss_type = "ForCausalLM"
    return model


def _losses(model: Any, ids: Tensor, settings: Settings) -> dict[str, Callable[[], Tensor]]:
    targets = F.pad(ids[:, 1:], (0, 1), value=-100)
    ours = our_losses(True, settings)

    def through_hidden(name: str) -> Callable[[], Tensor]:
        def loss() -> Tensor:
            hidden = model.transformer(ids).last_hidden_state
            return ours[name](hidden, model.lm_head.weight, Batch((), targets, None))

        return loss

    def framework() -> Tensor:
        value: Tensor = model(ids, labels=ids).loss
        return value

    return {"CE framework": framework, **{name: through_hidden(name) for name in NAMES[1:]}}


def _checker(model: Any, ids: Tensor, case: Case, device: str) -> Callable[[str, Outcome], float]:
    with torch.no_grad(), torch.autocast(device, dtype=case.dtype):
        hidden = model.transformer(ids).last_hidden_state[:, :-1].to(case.dtype)
    batch = Batch((hidden, model.lm_head.weight.detach().to(case.dtype)), ids[:, 1:], None)
    answers = exact_answers(batch, ("CE", "SG"))

    def check(name: str, outcome: Outcome) -> float:
        expected = answers.loss[name[:2]]
        return judge({"loss": abs(float(outcome.loss.detach()) - expected)}, {"loss": LOSS_TOLERANCE * expected})

    return check
