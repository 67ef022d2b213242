"""What the paper measures, and the field's other standard figures: pure functions on ids, texts or per-token losses."""

from scalegrad.metrics.likelihood import bits_per_byte, calibrated_perplexity, perplexity
from scalegrad.metrics.loops import Loop, longest_loop, longest_loops
from scalegrad.metrics.predictions import hits_at_k, human_next_token, next_token, target_rank
from scalegrad.metrics.significance import Interval, PermutationTest, bootstrap, paired_bootstrap, permutation_test
from scalegrad.metrics.texts import RepetitionCounter, clean_up_spaces, repetition, repetition_per_text
from scalegrad.metrics.variety import compression_ratio, distinct_n, diversity, self_bleu, zipf_coefficient
from scalegrad.metrics.word_tokens import words

__all__ = [
    "Interval",
    "Loop",
    "PermutationTest",
    "RepetitionCounter",
    "bits_per_byte",
    "bootstrap",
    "calibrated_perplexity",
    "clean_up_spaces",
    "compression_ratio",
    "distinct_n",
    "diversity",
    "hits_at_k",
    "human_next_token",
    "longest_loop",
    "longest_loops",
    "next_token",
    "paired_bootstrap",
    "permutation_test",
    "perplexity",
    "repetition",
    "repetition_per_text",
    "self_bleu",
    "target_rank",
    "words",
    "zipf_coefficient",
]
