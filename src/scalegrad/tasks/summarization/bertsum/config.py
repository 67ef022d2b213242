"""The shapes of the two BertSum models, as Hugging Face configurations."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig, BertConfig, PegasusConfig, PretrainedConfig


class BertSumConfig(PretrainedConfig):  # type: ignore[misc]
    """A BERT encoder and a pre-norm Transformer decoder of the same width, with sinusoidal positions.

    `encoder`: a BertConfig or its dictionary. The decoder's own numbers are the original's by default: 6 layers of 8
    heads, 2,048 inner units, dropout 0.2. The special ids are those of the tokenizer: a summary starts after `[CLS]`
    and ends with `[SEP]`.

    >>> config = BertSumConfig(BertConfig(hidden_size=64, num_attention_heads=2), decoder_layers=3)
    >>> config.decoder.d_model, config.decoder.decoder_layers, config.decoder.decoder_ffn_dim, config.decoder.dropout
    (64, 3, 2048, 0.2)
    """

    model_type = "bertsum"
    sub_configs = {"encoder": BertConfig, "decoder": PegasusConfig}  # noqa: RUF012 (as the base class has it)

    def __init__(
        self,
        encoder: BertConfig | dict[str, Any] | None = None,
        decoder_layers: int = 6,
        decoder_heads: int = 8,
        decoder_inner: int = 2048,
        decoder_dropout: float = 0.2,
        decoder_positions: int = 512,
        decoder_start_token_id: int = 101,
        eos_token_id: int = 102,
        pad_token_id: int = 0,
        **others: Any,
    ) -> None:
        self.encoder = encoder if isinstance(encoder, BertConfig) else BertConfig(**(encoder or {}))
        self.decoder_layers, self.decoder_heads, self.decoder_inner = decoder_layers, decoder_heads, decoder_inner
        self.decoder_dropout, self.decoder_positions = decoder_dropout, decoder_positions
        _check_heads("decoder_heads", decoder_heads, self.encoder.hidden_size)
        others.pop("decoder", None)  # saved for readers of the file; the numbers above make it again
        self.decoder = PegasusConfig(
            vocab_size=self.encoder.vocab_size,
            max_position_embeddings=decoder_positions,
            d_model=self.encoder.hidden_size,
            decoder_layers=decoder_layers,
            decoder_attention_heads=decoder_heads,
            decoder_ffn_dim=decoder_inner,
            dropout=decoder_dropout,
            attention_dropout=decoder_dropout,
            scale_embedding=True,
            is_decoder=True,
            pad_token_id=pad_token_id,
            eos_token_id=eos_token_id,
            decoder_start_token_id=decoder_start_token_id,
            forced_eos_token_id=None,
        )
        self.vocab_size, self.hidden_size = self.encoder.vocab_size, self.encoder.hidden_size
        others = {"tie_word_embeddings": True, **others, "is_encoder_decoder": True}
        super().__init__(
            decoder_start_token_id=decoder_start_token_id,
            eos_token_id=eos_token_id,
            pad_token_id=pad_token_id,
            **others,
        )


class SentenceSelectorConfig(PretrainedConfig):  # type: ignore[misc]
    """A BERT encoder and a small Transformer over its sentence vectors.

    >>> SentenceSelectorConfig(BertConfig(hidden_size=64, num_attention_heads=2)).selector_layers
    2
    """

    model_type = "bertsum_sentence_selector"
    sub_configs = {"encoder": BertConfig}  # noqa: RUF012

    def __init__(
        self,
        encoder: BertConfig | dict[str, Any] | None = None,
        selector_layers: int = 2,
        selector_heads: int = 8,
        selector_inner: int = 2048,
        selector_dropout: float = 0.1,
        **others: Any,
    ) -> None:
        self.encoder = encoder if isinstance(encoder, BertConfig) else BertConfig(**(encoder or {}))
        _check_heads("selector_heads", selector_heads, self.encoder.hidden_size)
        self.selector_layers, self.selector_heads = selector_layers, selector_heads
        self.selector_inner, self.selector_dropout = selector_inner, selector_dropout
        super().__init__(**others)


def _check_heads(name: str, heads: int, width: int) -> None:
    if width % heads:
        raise ValueError(f"{name} must divide the encoder's width {width}, and {heads} does not")


AutoConfig.register(BertSumConfig.model_type, BertSumConfig, exist_ok=True)
AutoConfig.register(SentenceSelectorConfig.model_type, SentenceSelectorConfig, exist_ok=True)
