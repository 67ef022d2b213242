"""What the paper measures, and the field's other standard figures: pure functions on ids, texts or per-token losses."""

from scalegrad.metrics.texts import RepetitionCounter, clean_up_spaces, repetition, repetition_per_text
from scalegrad.metrics.word_tokens import words

__all__ = [
    "RepetitionCounter",
    "clean_up_spaces",
    "repetition",
    "repetition_per_text",
    "words",
]
