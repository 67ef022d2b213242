"""Stage 1: which sentences of the source belong into its summary?"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, BertModel, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from scalegrad.tasks.summarization.bertsum.config import SentenceSelectorConfig

IGNORED = -100


class SentenceSelector(PreTrainedModel):  # type: ignore[misc]
    """A BERT whose `[CLS]` vectors, one a sentence, pass a small pre-norm Transformer and a logistic unit each.

    The loss is the binary cross-entropy, averaged over sentences. What it teaches the encoder is what stage 2 starts
    from: `BertSum.from_bert(selector.bert, …)`.
    """

    config_class = SentenceSelectorConfig
    base_model_prefix = "selector"
    main_input_name = "input_ids"
    _supports_sdpa = True
    supports_gradient_checkpointing = True

    def __init__(self, config: SentenceSelectorConfig) -> None:
        super().__init__(config)
        width = config.encoder.hidden_size
        self.bert = BertModel(config.encoder, add_pooling_layer=False)
        layer = nn.TransformerEncoderLayer(
            width,
            config.selector_heads,
            config.selector_inner,
            config.selector_dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.layers = nn.TransformerEncoder(
            layer, config.selector_layers, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.score = nn.Linear(width, 1)
        self.post_init()

    @classmethod
    def from_bert(cls, bert: Any, **shape: Any) -> SentenceSelector:
        """A selector over the weights of `bert`, its own layers fresh; `shape`: see `SentenceSelectorConfig`."""
        model = cls(SentenceSelectorConfig(encoder=bert.config, **shape))
        model.bert.load_state_dict(bert.state_dict())
        return model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        sentence_positions: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: int | Tensor | None = None,
        **others: Any,
    ) -> SequenceClassifierOutput:
        """Log-odds [B, S] that each sentence is chosen.

        `sentence_positions` [B, S]: where the `[CLS]` of each sentence stands, -1 for none. `labels` [B, S]: 1 for a
        sentence of the oracle, 0 for another, -100 for none. The loss is a mean over sentences, or their sum over
        `num_items_in_batch`.
        """
        if sentence_positions is None:
            raise ValueError("sentence_positions must say where the [CLS] of each sentence stands, and is missing")
        states = self.bert(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state
        there = sentence_positions >= 0  # [B, S]
        rows = torch.arange(len(states), device=states.device)[:, None]
        vectors = states[rows, sentence_positions.clamp(min=0)]  # [B, S, D]
        vectors = vectors + sinusoids(vectors.shape[1], vectors.shape[2], vectors)
        vectors = self.layers(vectors.masked_fill(~there[..., None], 0.0), src_key_padding_mask=~there)
        logits = self.score(vectors)[..., 0].float()
        loss = None if labels is None else self._loss(logits, labels, num_items_in_batch)
        return SequenceClassifierOutput(loss=loss, logits=logits.masked_fill(~there, -math.inf))

    @staticmethod
    def _loss(logits: Tensor, labels: Tensor, num_items: int | Tensor | None) -> Tensor:
        kept = labels != IGNORED
        each = nn.functional.binary_cross_entropy_with_logits(logits, labels.clamp(min=0).to(logits), reduction="none")
        return (each * kept).sum() / (kept.sum().clamp(min=1) if num_items is None else num_items)


def sinusoids(places: int, width: int, like: Tensor) -> Tensor:
    """The sines and cosines [places, width] that tell a Transformer where a vector stands, in the dtype of `like`.

    >>> sinusoids(2, 4, torch.zeros(1))  # sin and cos of 0 and 1, and of a hundredth of that
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    place = torch.arange(places, device=like.device, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=like.device) * (-math.log(10_000.0) / width))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], dim=-1).flatten(1)[:, :width].to(like)


AutoModel.register(SentenceSelectorConfig, SentenceSelector, exist_ok=True)
