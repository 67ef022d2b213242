"""How a pair becomes a model's input and labels, for each kind of model that can summarise.

BertSum reads sentences, each with its own `[CLS]`; another encoder-decoder reads the article; a causal LM reads the
article inside a prompt and goes on. All three offer the same four methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from scalegrad.counts import are, counted
from scalegrad.data.pairs import Pair
from scalegrad.tasks.summarization.batching import TARGET_TOKENS
from scalegrad.training.batches import Pad

IGNORED = -100
PROMPT = "{article}\n\nSummary:"

Example = dict[str, list[int]]

_ONE = {"articles": "article", "summaries": "summary"}  # what is counted, and one of it


@dataclass
class Cuts:
    """How many texts were longer than the model takes, and were cut: said once, by `sentence`."""

    texts: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)

    def count(self, what: str, cut: bool) -> None:
        self.texts[what] += 1
        self.cut[what] += cut

    def sentence(self, limits: dict[str, int]) -> str | None:
        """What was cut, in words; None where nothing was."""
        told = [
            f"{self.cut[what]:,} of {counted(self.texts[what], _ONE[what], what)} {are(self.cut[what])} longer than "
            f"{counted(limits[what], 'token')} and cut there"
            for what in limits
            if self.cut[what]
        ]
        return "; ".join(told) or None


class Format(Protocol):
    """What training and writing need to know of a model's inputs."""

    tokenizer: Any
    cuts: Cuts

    def source(self, pair: Pair) -> Example:
        """What the model reads before it writes."""
        ...

    def example(self, pair: Pair) -> Example:
        """What the model is trained on: the source and the first reference, as `labels`."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """What the model wrote, a line for each sentence where it marks them."""
        ...

    def limits(self) -> dict[str, int]:
        """The most tokens of articles and summaries."""
        ...


@dataclass
class BertSumFormat:
    """`[CLS] sentence [SEP] [CLS] sentence [SEP] …` with segment ids 0 and 1 in turn; a summary ends with `[SEP]`.

    Between the sentences of a summary stands `[unused0]`, where the vocabulary has it.
    """

    tokenizer: Any
    source_tokens: int = 512
    target_tokens: int = TARGET_TOKENS
    cuts: Cuts = field(default_factory=Cuts)

    def source(self, pair: Pair) -> Example:
        ids: list[int] = []
        segments: list[int] = []
        positions: list[int] = []
        pieces = self.tokenizer(list(pair.source), add_special_tokens=False, verbose=False)["input_ids"]
        for number, piece in enumerate(pieces):
            if len(ids) + 2 <= self.source_tokens:  # room for its first sign and for the end
                positions.append(len(ids))
            ids += [self.tokenizer.cls_token_id, *piece, self.tokenizer.sep_token_id]
            segments += [number % 2] * (len(piece) + 2)
        cut = len(ids) > self.source_tokens
        self.cuts.count("articles", cut)
        if cut:
            ids = [*ids[: self.source_tokens - 1], self.tokenizer.sep_token_id]
            segments = segments[: self.source_tokens]
        return {"input_ids": ids, "token_type_ids": segments, "sentence_positions": positions}

    def example(self, pair: Pair) -> Example:
        read = self.source(pair)
        del read["sentence_positions"]
        return {**read, "labels": self.target(pair.references[0])}

    def target(self, summary: str) -> list[int]:
        """The ids of a summary, a sentence a line, with its end; cut to the longest allowed."""
        lines = self.tokenizer(summary.splitlines(), add_special_tokens=False, verbose=False)["input_ids"]
        mark = self.tokenizer.get_vocab().get("[unused0]")
        ids = list(lines[0])
        for line in lines[1:]:
            ids += ([] if mark is None else [mark]) + line
        return _ended(ids, self.tokenizer.sep_token_id, self.target_tokens, self.cuts)

    def text(self, ids: Sequence[int]) -> str:
        mark = self.tokenizer.get_vocab().get("[unused0]")
        sentences: list[list[int]] = [[]]
        for token in ids:
            if token == mark:
                sentences.append([])
            else:
                sentences[-1].append(token)
        texts = (_decoded(self.tokenizer, sentence) for sentence in sentences)
        return "\n".join(text for text in texts if text)

    def limits(self) -> dict[str, int]:
        return {"articles": self.source_tokens, "summaries": self.target_tokens}


@dataclass
class EncoderDecoderFormat:
    """The article in one piece, after `prefix` (T5's "summarize: ").

    `first` is the token that generation forces at the beginning (BART's `<s>`): a target too, so that the model learns
    what follows it.
    """

    tokenizer: Any
    source_tokens: int = 1024
    target_tokens: int = TARGET_TOKENS
    prefix: str = ""
    first: int | None = None
    cuts: Cuts = field(default_factory=Cuts)

    def source(self, pair: Pair) -> Example:
        text = self.prefix + pair.text
        whole = self.tokenizer(text, verbose=False)["input_ids"]
        cut = len(whole) > self.source_tokens
        self.cuts.count("articles", cut)
        ids = self.tokenizer(text, truncation=True, max_length=self.source_tokens)["input_ids"] if cut else whole
        return {"input_ids": ids}

    def example(self, pair: Pair) -> Example:
        summary = " ".join(pair.references[0].splitlines())
        ids = self.tokenizer(text_target=summary, add_special_tokens=False, verbose=False)["input_ids"]
        ids = ids if self.first is None else [self.first, *ids]
        return {**self.source(pair), "labels": _ended(ids, self.tokenizer.eos_token_id, self.target_tokens, self.cuts)}

    def text(self, ids: Sequence[int]) -> str:
        return _decoded(self.tokenizer, ids)

    def limits(self) -> dict[str, int]:
        return {"articles": self.source_tokens, "summaries": self.target_tokens}


@dataclass
class CausalFormat:
    """The article inside `prompt`, whose `{article}` it replaces; the summary follows and ends with the end symbol.

    Only the article is cut where it is too long: the words around it stay.
    """

    tokenizer: Any
    source_tokens: int = 1024
    target_tokens: int = TARGET_TOKENS
    prompt: str = PROMPT
    cuts: Cuts = field(default_factory=Cuts)

    def __post_init__(self) -> None:
        if self.prompt.count("{article}") != 1:
            raise ValueError(f"prompt must hold {{article}} once, and is {self.prompt!r}")

    def source(self, pair: Pair) -> Example:
        before, after = self.prompt.split("{article}")
        start = [] if self.tokenizer.bos_token_id is None else [self.tokenizer.bos_token_id]
        head, tail = start + self._ids(before), self._ids(after)
        article = self._ids(pair.text)
        room = max(self.source_tokens - len(head) - len(tail), 1)
        self.cuts.count("articles", len(article) > room)
        ids = head + article[:room] + tail
        return {"input_ids": ids}

    def example(self, pair: Pair) -> Example:
        read = self.source(pair)["input_ids"]
        summary = self._ids(" " + pair.references[0])
        written = _ended(summary, self.tokenizer.eos_token_id, self.target_tokens, self.cuts)
        return {"input_ids": read + written, "labels": [IGNORED] * len(read) + written}

    def text(self, ids: Sequence[int]) -> str:
        return _decoded(self.tokenizer, ids)

    def limits(self) -> dict[str, int]:
        return {"articles": self.source_tokens, "summaries": self.target_tokens}

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) if text else []


def format_for(
    model: Any,
    tokenizer: Any,
    source_tokens: int | None = None,
    target_tokens: int = TARGET_TOKENS,
    template: str | None = None,
) -> Format:
    """The format of a model. `source_tokens`: by default what its positions hold, at most 1,024."""
    config = model.config
    positions = _positions(config)
    if config.is_encoder_decoder:
        if template is not None:
            raise ValueError(f"template is for causal models, and this is a {config.model_type}")
        room = min(source_tokens or 1024, positions)
        if config.model_type == "bertsum":
            return BertSumFormat(tokenizer, room, target_tokens)
        first = getattr(getattr(model, "generation_config", None), "forced_bos_token_id", None)
        return EncoderDecoderFormat(tokenizer, room, target_tokens, _prefix(config), first)
    if tokenizer.eos_token_id is None:
        raise ValueError("the tokenizer has no end symbol, so a causal model could not learn where a summary ends")
    room = min(source_tokens or 1024, positions - target_tokens)
    if room < 2:
        raise ValueError(f"target_tokens is {target_tokens}, which leaves the model's {positions} positions no article")
    return CausalFormat(tokenizer, room, target_tokens, PROMPT if template is None else template)


def padding(tokenizer: Any, left: bool = False) -> Pad:
    """What makes a batch of examples of several lengths, filled up at the end (or, `left`, at the beginning)."""
    pad = tokenizer.pad_token_id
    return Pad(0 if pad is None else pad, left, {"input_ids": "attention_mask"}, {"sentence_positions": -1})


def _ended(ids: list[int], end: int, most: int, cuts: Cuts) -> list[int]:
    """A summary with its end symbol; one that is cut has none, for it goes on."""
    cuts.count("summaries", len(ids) + 1 > most)
    return [*ids, end][:most]


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)).strip()


def _positions(config: Any) -> int:
    """How many tokens a model can read."""
    encoder = getattr(config, "encoder", None)
    for holder in (encoder if hasattr(encoder, "max_position_embeddings") else config, config):
        for name in ("max_position_embeddings", "n_positions"):
            if isinstance(found := getattr(holder, name, None), int) and found > 0:
                return found
    return 1 << 20  # relative positions: no bound of its own


def _prefix(config: Any) -> str:
    tasks = getattr(config, "task_specific_params", None) or {}
    return str(tasks.get("summarization", {}).get("prefix", "summarize: " if config.model_type == "t5" else ""))
