"""The top-down attention captioner: two LSTMs over the region features of an image, as a Hugging Face model.

The attention LSTM reads the word, the image as a whole and what the language LSTM last held; its state asks the
regions; the language LSTM reads the answer and predicts the next word (Anderson et al. 2018, which the paper's
captioning system builds on).
"""

# ruff: noqa: E402

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalegrad.extras import need
from scalegrad.tasks.captioning.captioner.recurrence import LstmStates, Regions, Weights, steps

need("transformers", extra="caption")  # said once, before the classes below want it

from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.utils import ModelOutput

IGNORED = -100  # a label that is no target


class CaptionerConfig(PreTrainedConfig):  # type: ignore[misc]
    """Sizes of a `Captioner`; the defaults are those of the paper's system, with its 2,048-wide region features.

    >>> CaptionerConfig(vocab_size=500, region_size=64, hidden_size=128).attention_size
    512
    """

    model_type = "scalegrad-captioner"
    keys_to_ignore_at_inference = ("past_key_values",)

    vocab_size: int = 5_000
    region_size: int = 2048
    hidden_size: int = 512
    attention_size: int = 512
    dropout: float | int = 0.5
    regions_from: str = ""  # what made the features: a name `tasks.captioning` can load, or nothing
    is_encoder_decoder: bool = True
    use_cache: bool = True
    tie_word_embeddings: bool = False
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 1


@dataclass
class EncodedRegions(ModelOutput):  # type: ignore[misc]
    """What the decoder reads: `last_hidden_state` [B, R, H], `keys` [B, R, A], `image` [B, H] and `mask` [B, R]."""

    last_hidden_state: Tensor | None = None
    keys: Tensor | None = None
    image: Tensor | None = None
    mask: Tensor | None = None


@dataclass
class LstmState:
    """Where the two LSTMs stand after `length` words. `generate` treats it as its cache."""

    tensors: LstmStates
    length: int

    def get_seq_length(self, layer: int = 0) -> int:
        """How many words were read."""
        return self.length

    def reorder_cache(self, beams: Tensor) -> None:
        """Let row i continue from row beams[i]."""
        self.tensors = LstmStates(*(tensor.index_select(0, beams) for tensor in self.tensors))


class RegionEncoder(nn.Module):
    """Region features [B, R, F], with a mask [B, R] of those that are there, made ready for the decoder."""

    main_input_name = "region_features"

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__()
        self.regions = nn.Linear(config.region_size, config.hidden_size)
        self.image = nn.Linear(config.region_size, config.hidden_size)
        self.keys = nn.Linear(config.hidden_size, config.attention_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, region_features: Tensor, region_mask: Tensor | None = None, **asked: Any) -> EncodedRegions:
        """Values and keys of each region, and the image as a whole (from the mean of its regions).

        `asked` is what `generate` asks of every encoder (a dict, attentions): it is always the one answer.
        """
        if region_mask is None:
            region_mask = region_features.new_ones(region_features.shape[:2])
        there = region_mask.to(region_features.dtype)[..., None]  # [B, R, 1]
        mean = (region_features * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)
        values = self.dropout(F.relu(self.regions(region_features)))
        image = self.dropout(F.relu(self.image(mean)))
        return EncodedRegions(values, self.keys(values), image, region_mask)


class Captioner(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """Paragraphs from region features: an encoder-decoder for `generate`, Trainer and `integrations.hf.attach`.

    `region_features` [B, R, F], `region_mask` [B, R] (1 where a region is there; left out: all are), `labels` [B, T],
    not shifted, −100 where there is no target, each paragraph ending in the end symbol. Without `decoder_input_ids` the
    decoder reads the labels, one place later.

    `scheduled_sampling` is the probability that in training a word it reads is drawn from the model itself; the labels,
    and so the set of seen words, stay the gold ones.

    >>> _ = torch.manual_seed(0)
    >>> model = Captioner(CaptionerConfig(vocab_size=9, region_size=4, hidden_size=8, attention_size=8)).eval()
    >>> out = model(region_features=torch.ones(2, 3, 4), labels=torch.tensor([[5, 6, 2], [7, 2, -100]]))
    >>> out.logits.shape, bool(abs(out.loss - torch.tensor(9.0).log()) < 0.5)  # untrained: near uniform
    (torch.Size([2, 3, 9]), True)
    """

    config_class = CaptionerConfig
    main_input_name = "region_features"
    base_model_prefix = ""

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.encoder = RegionEncoder(config)
        self.words = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.word_gates = nn.Linear(width, 4 * width)
        self.image_gates = nn.Linear(width, 4 * width, bias=False)
        self.state_gates = nn.Linear(2 * width, 4 * width, bias=False)  # of [language, attention] hidden states
        self.query = nn.Linear(width, config.attention_size, bias=False)
        self.score = nn.Linear(config.attention_size, 1, bias=False)
        self.language_gates = nn.Linear(3 * width, 4 * width)  # of [regions, attention, language]
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(width, config.vocab_size)
        self.scheduled_sampling = 0.0
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Torch's own initialisation of the layers suits an LSTM of this size; forget gates begin open."""
        if isinstance(module, nn.Linear | nn.Embedding):
            module.reset_parameters()
        if module is getattr(self, "word_gates", None) or module is getattr(self, "language_gates", None):
            with torch.no_grad():
                self._forget(module.bias).fill_(1.0)

    def _forget(self, gates: Tensor) -> Tensor:
        width = self.config.hidden_size
        return gates[..., width : 2 * width]

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # its memory is the LSTMs' state, not keys and values

    def get_encoder(self, modality: str | None = None) -> RegionEncoder:
        """What `generate` runs once an image."""
        return self.encoder

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of word vectors."""
        return self.words

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Exchange the table of word vectors."""
        self.words = value

    def get_output_embeddings(self) -> nn.Linear:
        """The layer that scores the vocabulary."""
        return self.head

    def set_output_embeddings(self, new_embeddings: nn.Linear) -> None:
        """Exchange the layer that scores the vocabulary."""
        self.head = new_embeddings

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Labels [B, T], one place later, after the start symbol; −100 becomes padding.

        >>> tiny = CaptionerConfig(vocab_size=9, region_size=4, hidden_size=8, attention_size=8)
        >>> Captioner(tiny).prepare_decoder_input_ids_from_labels(torch.tensor([[5, 6, 2], [7, 2, -100]]))
        tensor([[1, 5, 6],
                [1, 7, 2]])
        """
        first = labels.new_full((labels.shape[0], 1), self.config.decoder_start_token_id)
        return torch.cat([first, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.config.pad_token_id)], 1)

    def forward(
        self,
        region_features: Tensor | None = None,
        region_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        labels: Tensor | None = None,
        encoder_outputs: EncodedRegions | None = None,
        past_key_values: LstmState | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: int | Tensor | None = None,
    ) -> Seq2SeqLMOutput:
        """Scores [B, T, V] of each next word; with labels also the mean negative log-likelihood."""
        if encoder_outputs is None:
            if region_features is None:
                raise ValueError("region_features must be given: [B, R, F] features of the regions of each image")
            encoder_outputs = self.encoder(region_features, region_mask)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("decoder_input_ids or labels must be given: there is nothing to read")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        hidden, state = self._decode(decoder_input_ids, encoder_outputs, past_key_values)
        logits = self.head(self.dropout(hidden))
        loss = None
        if labels is not None:
            total = F.cross_entropy(
                logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="sum"
            )
            loss = total / ((labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch)
        return Seq2SeqLMOutput(
            loss=loss, logits=logits, past_key_values=state, encoder_last_hidden_state=encoder_outputs.last_hidden_state
        )

    def _decode(self, ids: Tensor, encoded: EncodedRegions, state: LstmState | None) -> tuple[Tensor, LstmState]:
        """Word ids [B, T] -> the language LSTM's states [B, T, H] and where both LSTMs stand after them.

        All that does not depend on the recurrence is computed here, for every step at once.
        """
        values, keys, image, mask = encoded.last_hidden_state, encoded.keys, encoded.image, encoded.mask
        if values is None or keys is None or image is None or mask is None:
            raise ValueError("encoder_outputs must hold all that the encoder gives")
        from_image = self.image_gates(image)  # [B, 4H]
        words = self._word_gates(ids.t()) + from_image  # [T, B, 4H]
        regions = Regions(values, keys, None if nothing_masked(mask) else mask == 0)
        weights = Weights(
            self.state_gates.weight,
            self.query.weight,
            self.score.weight[0],
            self.language_gates.weight,
            self.language_gates.bias,
        )
        sampling = self.scheduled_sampling if self.training else 0.0
        start = LstmStates(*[torch.zeros_like(image)] * 4) if state is None else state.tensors
        own = (lambda gates, last: self._with_own_words(gates, from_image, last, sampling)) if sampling else None
        hidden, end = steps(words, regions, start, weights, own)
        return hidden.transpose(0, 1), LstmState(end, ids.shape[1] + (0 if state is None else state.length))

    def _word_gates(self, ids: Tensor) -> Tensor:
        gates: Tensor = self.word_gates(self.dropout(F.relu(self.words(ids))))
        return gates

    def _with_own_words(self, gates: Tensor, from_image: Tensor, last: Tensor, probability: float) -> Tensor:
        """Scheduled sampling: some rows of `gates` [B, 4H] read a word drawn from the model's last prediction."""
        chosen = (torch.rand(gates.shape[0], device=gates.device) < probability).nonzero().squeeze(1)
        if not len(chosen):
            return gates
        with torch.no_grad():  # not through the layer itself: a hook on it may be collecting the training states
            scores = F.linear(last[chosen], self.head.weight, self.head.bias)
            drawn = torch.multinomial(torch.softmax(scores.float(), dim=-1), 1).squeeze(1)
        own = self._word_gates(drawn) + from_image[chosen]
        return gates.index_copy(0, chosen, own.to(gates.dtype))


def nothing_masked(mask: Tensor) -> bool:
    """Whether nothing is masked, asked only where the answer is at hand: on an accelerator it would wait."""
    return mask.device.type == "cpu" and bool((mask != 0).all())
