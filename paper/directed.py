"""The directed tasks of the paper: summarisation and image paragraph captioning."""

from __future__ import annotations

from paper import captions, summaries
from paper.outcome import Experiment

EXPERIMENTS = (
    Experiment(  # tables 14 and 15: its data and settings; 23 to 26: summaries
        "summarization",
        "Abstractive summarisation",
        ("table 5", "table 14", "table 15", "table 23", "table 24", "table 25", "table 26"),
        summaries.summarization,
        jobs=summaries.jobs,
    ),
    Experiment(
        "summarization-decoding",
        "Summaries sampled, against beam search",
        ("table 8",),
        summaries.summarization_decoding,
        jobs=summaries.jobs,
    ),
    Experiment(  # table 16: its settings; 21 and 22: paragraphs
        "captioning",
        "Image paragraph captioning",
        ("table 4", "table 16", "table 21", "table 22"),
        captions.captioning,
        jobs=captions.jobs,
    ),
    Experiment(
        "captioning-degeneration",
        "How repetitive image paragraphs are",
        ("table 9",),
        captions.captioning_degeneration,
        jobs=captions.jobs,
    ),
    Experiment(
        "captioning-decoding",
        "Image paragraphs sampled, against greedy search",
        ("table 18",),
        captions.captioning_decoding,
        jobs=captions.jobs,
    ),
)
