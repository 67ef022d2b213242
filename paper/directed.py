"""The directed tasks of the paper: summarisation and image paragraph captioning."""

from __future__ import annotations

from paper.captions import captioning, captioning_decoding, captioning_degeneration
from paper.outcome import Experiment
from paper.summaries import summarization, summarization_decoding

EXPERIMENTS = (
    Experiment(  # tables 14 and 15: its data and settings; 23 to 26: summaries
        "summarization",
        "Abstractive summarisation",
        ("table 5", "table 14", "table 15", "table 23", "table 24", "table 25", "table 26"),
        summarization,
    ),
    Experiment(
        "summarization-decoding", "Summaries sampled, against beam search", ("table 8",), summarization_decoding
    ),
    Experiment(  # table 16: its settings; 21 and 22: paragraphs
        "captioning", "Image paragraph captioning", ("table 4", "table 16", "table 21", "table 22"), captioning
    ),
    Experiment("captioning-degeneration", "How repetitive image paragraphs are", ("table 9",), captioning_degeneration),
    Experiment(
        "captioning-decoding", "Image paragraphs sampled, against greedy search", ("table 18",), captioning_decoding
    ),
)
