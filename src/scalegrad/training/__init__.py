"""Training for every task: `fit` trains a model with an objective and leaves a run's folder behind.

Built on the Trainer of transformers, so that torchrun, FSDP2 and DeepSpeed work as people know them. Killed at any
moment, the same call goes on from the last checkpoint and ends with the same weights.
"""

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy
from scalegrad.training.settings import Settings

if TYPE_CHECKING:
    from scalegrad.training.batches import Pad
    from scalegrad.training.fitting import Fitted, fit
    from scalegrad.training.trainer import Reporter
else:
    __getattr__, __dir__ = lazy(__name__, batches="Pad", fitting="Fitted fit", trainer="Reporter")

__all__ = ["Fitted", "Pad", "Reporter", "Settings", "fit"]
