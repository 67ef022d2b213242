"""What the paper measures, and the field's other standard figures: pure functions on ids, texts or per-token losses."""

from scalegrad.metrics.loops import Loop, longest_loop, longest_loops
from scalegrad.metrics.texts import RepetitionCounter, clean_up_spaces, repetition, repetition_per_text
from scalegrad.metrics.word_tokens import words

__all__ = [
    "Loop",
    "RepetitionCounter",
    "clean_up_spaces",
    "longest_loop",
    "longest_loops",
    "repetition",
    "repetition_per_text",
    "words",
]
