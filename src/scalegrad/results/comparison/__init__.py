"""Systems side by side: a headline, a table, pictures, and one HTML page worth showing.

The data is plain (`System`): what was trained and decoded how, figures, deviations over seeds, a training log, texts.
It comes from rows of runs (`compare`) or from anywhere else.

>>> from scalegrad.results.comparison import Comparison, System, headline
>>> mle, sg = System(objective="mle", figures={"rep_1": 0.66}), System(objective="sg", figures={"rep_1": 0.44})
>>> headline(Comparison([mle, sg]))
'Of 100 words, SG repeats 44 and MLE 66.'
"""

from scalegrad.results.comparison.compare import compare
from scalegrad.results.comparison.page import page, write_page
from scalegrad.results.comparison.plots import plots
from scalegrad.results.comparison.systems import Comparison, Sample, System
from scalegrad.results.comparison.terminal import headline
from scalegrad.results.figure import Plot

__all__ = ["Comparison", "Plot", "Sample", "System", "compare", "headline", "page", "plots", "write_page"]
