"""Counts in sentences: one text, two texts."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun in the right form; `plural` is needed where it is not the noun and an s.

    >>> counted(1, "text"), counted(2000, "text"), counted(0, "summary", "summaries")
    ('1 text', '2,000 texts', '0 summaries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def are(number: int) -> str:
    """The verb after a count.

    >>> f"1 of 5 texts {are(1)} empty, 2 {are(2)} short"
    '1 of 5 texts is empty, 2 are short'
    """
    return "is" if number == 1 else "are"
