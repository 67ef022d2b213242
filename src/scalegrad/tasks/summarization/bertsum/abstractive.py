"""Stage 2: a decoder that writes the summary, over the encoder that stage 1 has taught."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForSeq2SeqLM, BertModel, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.models.pegasus.modeling_pegasus import PegasusDecoder

from scalegrad.tasks.summarization.bertsum.config import BertSumConfig

IGNORED = -100


class BertSum(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """BERT and a Transformer decoder, an encoder-decoder like any other: `generate`, `save_pretrained`, the Trainer.

    The decoder's word embeddings begin as a copy of BERT's and are tied to its output layer, which has a bias. The
    decoder itself is Pegasus', the pre-norm decoder with sinusoidal positions that transformers has.
    """

    config_class = BertSumConfig
    base_model_prefix = "bertsum"
    main_input_name = "input_ids"
    _supports_sdpa = True
    supports_gradient_checkpointing = True
    _tied_weights_keys = {"lm_head.weight": "decoder.embed_tokens.weight"}  # noqa: RUF012

    def __init__(self, config: BertSumConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config.encoder, add_pooling_layer=False)
        self.decoder = PegasusDecoder(config.decoder)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    @classmethod
    def from_bert(cls, bert: Any, tokenizer: Any, **shape: Any) -> BertSum:
        """A BertSum over the weights of `bert`; the decoder's matrices are fresh, its word embeddings BERT's.

        `tokenizer` gives the special ids; `shape`: see `BertSumConfig`.
        """
        config = BertSumConfig(
            encoder=bert.config,
            decoder_start_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            pad_token_id=tokenizer.pad_token_id,
            **shape,
        )
        model = cls(config)
        model.bert.load_state_dict(bert.state_dict())
        with torch.no_grad():
            for name, weight in model.decoder.named_parameters():
                if weight.dim() > 1 and not name.startswith("embed_"):
                    nn.init.xavier_uniform_(weight)
            model.decoder.embed_tokens.weight.copy_(bert.embeddings.word_embeddings.weight)
            model.lm_head.bias.zero_()
        return model

    def get_encoder(self, modality: str | None = None) -> Any:
        return self.bert

    def get_decoder(self) -> Any:
        return self.decoder

    def get_input_embeddings(self) -> Any:
        return self.bert.embeddings.word_embeddings

    def get_output_embeddings(self) -> Any:
        return self.lm_head

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        num_items_in_batch: int | Tensor | None = None,
        **others: Any,
    ) -> Seq2SeqLMOutput:
        """Logits [B, T, V]; with `labels` [B, T] (-100: ignored) also the plain cross-entropy.

        `token_type_ids` [B, S] alternate with the sentences of the source. Without `decoder_input_ids` the decoder
        reads the labels, shifted to the right behind its start symbol. The loss is a mean, or the sum over
        `num_items_in_batch`.
        """
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("decoder_input_ids or labels must be given: there is nothing for the decoder to read")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if encoder_outputs is None:
            encoder_outputs = self.bert(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        read = encoder_outputs[0]
        written = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=read,
            encoder_attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache if labels is None else False,
        )
        logits = self.lm_head(written.last_hidden_state)
        loss = None if labels is None else _cross_entropy(logits, labels, num_items_in_batch)
        return Seq2SeqLMOutput(
            loss=loss, logits=logits, past_key_values=written.past_key_values, encoder_last_hidden_state=read
        )

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """[B, T] labels -> [B, T] what the decoder reads: its start symbol, then all labels but the last."""
        shifted = torch.full_like(labels, self.config.decoder_start_token_id)
        shifted[:, 1:] = labels[:, :-1]
        return shifted.masked_fill(shifted == IGNORED, self.config.pad_token_id)


def _cross_entropy(logits: Tensor, labels: Tensor, num_items: int | Tensor | None) -> Tensor:
    total = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / ((labels != IGNORED).sum().clamp(min=1) if num_items is None else num_items)


AutoModelForSeq2SeqLM.register(BertSumConfig, BertSum, exist_ok=True)
