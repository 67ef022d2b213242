"""Reproductions of the paper's tables and figures: in a folder, on a terminal, as Markdown and as one HTML page."""

from paper.pages.folder import read_all, read_folder, write_folder
from paper.pages.page import page, write_page
from paper.pages.result import Picture, Reproduction, Shown, where

__all__ = [
    "Picture",
    "Reproduction",
    "Shown",
    "page",
    "read_all",
    "read_folder",
    "where",
    "write_folder",
    "write_page",
]
