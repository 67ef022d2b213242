"""The directed tasks of the paper: summarisation and image paragraph captioning."""

from __future__ import annotations

from scalegrad.lab.reproduction.captions import captioning, captioning_decoding, captioning_degeneration
from scalegrad.lab.reproduction.outcome import Experiment
from scalegrad.lab.reproduction.summaries import summarization, summarization_decoding

EXPERIMENTS = (
    Experiment("summarization", "Abstractive summarisation", ("table 5",), summarization),
    Experiment(
        "summarization-decoding", "Summaries sampled, against beam search", ("table 8",), summarization_decoding
    ),
    Experiment("captioning", "Image paragraph captioning", ("table 4",), captioning),
    Experiment("captioning-degeneration", "How repetitive image paragraphs are", ("table 9",), captioning_degeneration),
    Experiment(
        "captioning-decoding", "Image paragraphs sampled, against greedy search", ("table 18",), captioning_decoding
    ),
)
