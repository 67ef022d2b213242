"""Systems side by side: a headline, a table, pictures, and one HTML page worth showing.

The data is plain (`System`): figures, deviations over seeds, a training log, texts. It comes from run folders
(`compare_runs`) or from anywhere else.

>>> from scalegrad.results.comparison import Comparison, System, headline
>>> headline(Comparison([System("MLE", {"rep_1": 0.66}, family="mle"), System("SG", {"rep_1": 0.44}, family="sg")]))
'Of 100 words, SG repeats 44 and MLE 66.'
"""

from scalegrad.results.comparison.evaluations import human_row, rows_of
from scalegrad.results.comparison.load import compare_runs, find_runs
from scalegrad.results.comparison.page import page, write_page
from scalegrad.results.comparison.picture import Plot
from scalegrad.results.comparison.plots import plots
from scalegrad.results.comparison.systems import Comparison, Sample, System, merge_seeds
from scalegrad.results.comparison.wording import headline

__all__ = [
    "Comparison",
    "Plot",
    "Sample",
    "System",
    "compare_runs",
    "find_runs",
    "headline",
    "human_row",
    "merge_seeds",
    "page",
    "plots",
    "rows_of",
    "write_page",
]
