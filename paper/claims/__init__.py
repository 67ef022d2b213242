"""The paper's claims, each with a verdict computed from its own tables and from stored results.

    python -m paper.claims docs/results

reads claims.toml and the results in that folder and writes claims.md beside them. Of results of your own, a folder that
`python -m paper --out` filled:

    python -m paper.claims reproduction/gpu --claims docs/results/claims.toml
"""

from paper.claims.claim import Claim, Setting, read_claims, read_settings
from paper.claims.page import page
from paper.claims.stored import Results, illustrations, read_results
from paper.claims.verdicts import Verdict, judge, judge_all

__all__ = [
    "Claim",
    "Results",
    "Setting",
    "Verdict",
    "illustrations",
    "judge",
    "judge_all",
    "page",
    "read_claims",
    "read_results",
    "read_settings",
]
