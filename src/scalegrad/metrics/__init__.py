"""What the paper measures, and the field's other standard figures: pure functions on ids, texts or per-token losses."""

from scalegrad.metrics.loops import Loop, longest_loop, longest_loops
from scalegrad.metrics.significance import Interval, PermutationTest, bootstrap, paired_bootstrap, permutation_test
from scalegrad.metrics.texts import RepetitionCounter, clean_up_spaces, repetition, repetition_per_text
from scalegrad.metrics.variety import compression_ratio, distinct_n, diversity, self_bleu, zipf_coefficient
from scalegrad.metrics.word_tokens import words

__all__ = [
    "Interval",
    "Loop",
    "PermutationTest",
    "RepetitionCounter",
    "bootstrap",
    "clean_up_spaces",
    "compression_ratio",
    "distinct_n",
    "diversity",
    "longest_loop",
    "longest_loops",
    "paired_bootstrap",
    "permutation_test",
    "repetition",
    "repetition_per_text",
    "self_bleu",
    "words",
    "zipf_coefficient",
]
