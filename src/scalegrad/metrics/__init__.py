"""What the paper measures, and the field's other standard figures: pure functions on ids, texts or per-token losses."""

# ruff: noqa: E402

from typing import TYPE_CHECKING

from scalegrad._lazy import lazy
from scalegrad.extras import need

need("numpy", extra="measure")  # said once, before any module of the package wants it

from scalegrad.metrics.agreement import cohen_kappa, gwet_ac1, krippendorff_alpha, percentage_agreement, win_rate
from scalegrad.metrics.captions import caption_words, cider, cider_d, cider_d_per_text, cider_per_text
from scalegrad.metrics.loops import Loop, longest_loop, longest_loops
from scalegrad.metrics.overlap import bleu, rouge, rouge_per_text
from scalegrad.metrics.seeds import Spread, over_seeds
from scalegrad.metrics.significance import Interval, PermutationTest, bootstrap, paired_bootstrap, permutation_test
from scalegrad.metrics.texts import RepetitionCounter, clean_up_spaces, repetition, repetition_per_text
from scalegrad.metrics.variety import compression_ratio, diversity
from scalegrad.metrics.word_tokens import words

if TYPE_CHECKING:
    from scalegrad.metrics.likelihood import bits_per_byte, calibrated_perplexity, perplexity
    from scalegrad.metrics.mover import MoverScore, moverscore, moverscores
    from scalegrad.metrics.predictions import human_next_token, next_token
else:  # these need torch
    __getattr__, __dir__ = lazy(
        __name__,
        likelihood="bits_per_byte calibrated_perplexity perplexity",
        mover="MoverScore moverscore moverscores",
        predictions="human_next_token next_token",
    )

__all__ = [
    "Interval",
    "Loop",
    "MoverScore",
    "PermutationTest",
    "RepetitionCounter",
    "Spread",
    "bits_per_byte",
    "bleu",
    "bootstrap",
    "calibrated_perplexity",
    "caption_words",
    "cider",
    "cider_d",
    "cider_d_per_text",
    "cider_per_text",
    "clean_up_spaces",
    "cohen_kappa",
    "compression_ratio",
    "diversity",
    "gwet_ac1",
    "human_next_token",
    "krippendorff_alpha",
    "longest_loop",
    "longest_loops",
    "moverscore",
    "moverscores",
    "next_token",
    "over_seeds",
    "paired_bootstrap",
    "percentage_agreement",
    "permutation_test",
    "perplexity",
    "repetition",
    "repetition_per_text",
    "rouge",
    "rouge_per_text",
    "win_rate",
    "words",
]
