"""One call of a loss on one batch, with the oracle's answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from scalegrad import functional as SF
from tests import oracles

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
        if self.per_position:
            return self.strength
        return float(self.strength.flatten()[0]) if self.strength.numel() else 0.5
