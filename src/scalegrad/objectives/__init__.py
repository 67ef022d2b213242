"""Training objectives by name: the one place that turns "mle", "ul=1.0" or "sg=0.2" into a loss, and back."""

from scalegrad.objectives.objective import Objective, TokenLoss, label, of_record, parse, record

__all__ = ["Objective", "TokenLoss", "label", "of_record", "parse", "record"]
