"""Summaries side by side: figures with their intervals, and for each article what every system made of it."""

from scalegrad.report.summaries.page import page, write_page
from scalegrad.report.summaries.sheet import Article, Figure, Row, Sheet, load_sheet, validation_score
from scalegrad.report.summaries.terminal import print_sheet

__all__ = ["Article", "Figure", "Row", "Sheet", "load_sheet", "page", "print_sheet", "validation_score", "write_page"]
