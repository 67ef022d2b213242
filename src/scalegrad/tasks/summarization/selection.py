"""What is chosen on the validation set, and by which rule.

- Checkpoint: the one with the least plain validation NLL, whatever the objective (`scalegrad.training.fit`).
- Length normalisation β, for each model: the highest mean of ROUGE-1, -2 and -L F1 of its beam search.
- Strength, α of unlikelihood and γ of ScaleGrad: the run with the highest such mean at its own best β.

Ties go to the smaller number, so that the choice does not depend on the order of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scalegrad.data.pairs import Pair
from scalegrad.decoding.strategies import Beam
from scalegrad.tasks.summarization.config import BEAM, BETAS
from scalegrad.tasks.summarization.formats import Format
from scalegrad.tasks.summarization.scoring import mean_rouge
from scalegrad.tasks.summarization.writing import summarize

ALPHAS = (0.5, 1.0, 1.5)
GAMMAS = (0.2, 0.5, 0.8)
CHECKPOINT_RULE = "least plain validation NLL"
DECODING_RULE = "highest mean of ROUGE-1, -2 and -L F1 on the validation set"


@dataclass(frozen=True)
class Choice:
    """The value chosen, its score, and the score of every value of the grid."""

    value: float
    score: float
    scores: dict[float, float]


def best(scores: Mapping[float, float]) -> Choice:
    """The value with the highest score; of equal ones the smallest.

    >>> best({1.0: 20.0, 0.5: 21.0, 2.0: 21.0}).value
    0.5
    """
    if not scores:
        raise ValueError("scores must hold at least one value; there is none")
    value = min(scores, key=lambda candidate: (-scores[candidate], candidate))
    return Choice(value, scores[value], dict(scores))


def choose_beta(
    model: Any,
    form: Format,
    pairs: Sequence[Pair],
    betas: Sequence[float] = BETAS,
    beam: Beam = BEAM,
    progress: Callable[[int, int], None] | None = None,
    **writing: Any,
) -> Choice:
    """The length normalisation β with the best summaries of the validation `pairs`; `writing`: see `summarize`."""
    scores = {}
    for number, beta in enumerate(betas):
        told = None
        if progress:
            told = lambda done, total, number=number: progress(number * total + done, len(betas) * total)  # noqa: E731
        texts = summarize(model, form, pairs, replace(beam, gnmt=beta), progress=told, **writing)
        scores[beta] = mean_rouge(texts, pairs)
    return best(scores)
