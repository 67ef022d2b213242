"""The paper's tables and figures by name, each computed here and set beside what the paper prints."""

from paper.outcome import SCALES, Experiment, NotGiven, Outcome, Setup, Shown

__all__ = ["SCALES", "Experiment", "NotGiven", "Outcome", "Setup", "Shown"]
