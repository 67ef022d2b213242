"""How far training is, for whoever draws it."""

from __future__ import annotations

from typing import Any

from scalegrad.extras import need
from scalegrad.runs.progress import Progress


def training_progress(progress: Progress, what: str) -> Any:
    """A callback of the trainer that reports what is trained, with the last figures, its step and all steps.

    Each validation is reported too, by its batches.
    """
    callback: Any = need("transformers", extra="train").TrainerCallback

    figures: dict[str, str] = {}
    validated = 0  # batches of this validation

    class Report(callback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            known = {"nll": "NLL {:.3f}", "seen_mass": "seen {:.1%}", "eval_ppl": "validation ppl {:.2f}"}
            figures.update({key: text.format(logs[key]) for key, text in known.items() if key in logs})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress(" · ".join([what, *figures.values()]), state.global_step, state.max_steps)

        def on_prediction_step(self, args: Any, state: Any, control: Any, eval_dataloader: Any, **_: Any) -> None:
            nonlocal validated
            validated += 1
            progress(f"{what}: validating (batches)", validated, len(eval_dataloader))

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            nonlocal validated
            validated = 0

    return Report()
