"""The human study of the paper, on your own models: which of two systems continues a prefix better?

`drawing` draws a study (`design`) from completion files, `folder` keeps it on disk, `answers` stores what raters say,
`web` is the page they rate on and `analysis` turns answers into the paper's table. Each part loads when it is imported,
so that drawing a study needs no web server.
"""

from scalegrad.study.checks import read_checks
from scalegrad.study.completions import Completions, read_completions
from scalegrad.study.design import Item, Shown, Study
from scalegrad.study.drawing import draw_study, usable_prefixes
from scalegrad.study.folder import Links, load_study, write_study

__all__ = [
    "Completions",
    "Item",
    "Links",
    "Shown",
    "Study",
    "draw_study",
    "load_study",
    "read_checks",
    "read_completions",
    "usable_prefixes",
    "write_study",
]
