"""How repetitive are these texts, beside human text? What `scalegrad measure` computes and shows.

>>> from scalegrad.results.measure import build_report, measure
>>> report = build_report([measure(["no no no no no no no no"] * 10, "a stuck model")])
>>> report.rows[0].figures["stuck"].mean, report.rows[1].name, report.rows[1].figures["stuck"].mean
(1.0, 'human (8 words)', 0.0)
"""

from scalegrad.results.measure.files import measure_files
from scalegrad.results.measure.measurement import Measurement, Quote, measure
from scalegrad.results.measure.side_by_side import Difference, Figure, MeasureReport, Row, build_report, report_as_dict

__all__ = [
    "Difference",
    "Figure",
    "MeasureReport",
    "Measurement",
    "Quote",
    "Row",
    "build_report",
    "measure",
    "measure_files",
    "report_as_dict",
]
