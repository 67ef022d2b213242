"""How far training is, for whoever draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scalegrad.extras import need


def training_progress(told: Callable[[str, int, int], None], what: str) -> Any:
    """A callback of the trainer that tells `told` what is trained, with the last figures, its step and all steps."""
    callback: Any = need("transformers", extra="train").TrainerCallback

    figures: dict[str, str] = {}

    class Progress(callback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            known = {"nll": "NLL {:.3f}", "seen_mass": "seen {:.1%}", "eval_ppl": "validation ppl {:.2f}"}
            figures.update({key: text.format(logs[key]) for key, text in known.items() if key in logs})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            told(" · ".join([what, *figures.values()]), state.global_step, state.max_steps)

    return Progress()
