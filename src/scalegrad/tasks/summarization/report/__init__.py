"""Summaries side by side: figures with their intervals, and for each article what every system made of it."""

from scalegrad.tasks.summarization.report.page import page, write_page
from scalegrad.tasks.summarization.report.sheet import Article, Figure, Row, Sheet, load_sheet, validation_score
from scalegrad.tasks.summarization.report.terminal import print_sheet

__all__ = ["Article", "Figure", "Row", "Sheet", "load_sheet", "page", "print_sheet", "validation_score", "write_page"]
