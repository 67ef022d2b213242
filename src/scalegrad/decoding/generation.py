"""One call that decodes any causal or encoder-decoder model by any strategy, batched and reproducible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from scalegrad.counts import counted
from scalegrad.decoding.beam import BeamSearch
from scalegrad.decoding.cache import roomy_cache
from scalegrad.decoding.history import History
from scalegrad.decoding.processors import Processor
from scalegrad.decoding.sampling import RowNoise
from scalegrad.decoding.strategies import Beam, Strategy, check_new_tokens, parse
from scalegrad.decoding.words import WordBlock
from scalegrad.extras import need
from scalegrad.models.pretrained import end_ids

Prompts = Mapping[str, Tensor] | Sequence[Sequence[int]]

# A checkpoint may bring sampling and penalty settings of its own (generation_config.json); a strategy means what it
# says, so all of them are put back to neutral. Special ids, forced and suppressed ones stay the model's.
NEUTRAL: dict[str, Any] = {
    "do_sample": False,
    "num_beams": 1,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "length_penalty": 1.0,
    "early_stopping": False,
    "temperature": 1.0,
    "top_k": 50,  # the library's own default: any other value warns that nothing is sampled
    "top_p": 1.0,
    "top_h": None,
    "min_p": None,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "penalty_alpha": None,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "exponential_decay_length_penalty": None,
    "guidance_scale": None,
    "sequence_bias": None,
    "watermarking_config": None,
    "prompt_lookup_num_tokens": None,
    "max_time": None,
    "stop_strings": None,
}


def generate(
    model: Any,
    inputs: Prompts,
    strategy: Strategy | str = "greedy",
    *,
    new_tokens: int,
    min_new_tokens: int = 0,
    processors: Sequence[Processor] = (),
    seed: int = 0,
    keys: Sequence[int | str] | None = None,
    tokenizer: Any = None,
) -> list[list[int]]:
    """New token ids for each row of `inputs`, without the prompt, the end symbol and padding.

    `inputs`: lists of prompt ids of any lengths (padded here), or what a tokenizer returns, input_ids [B, T] with
    attention_mask, padded on the left for a causal LM; an encoder-decoder takes its encoder's inputs. No
    attention_mask means no padding. `strategy`: an object or its text, such as "top_p=0.9,gamma=0.5".
    `processors`: further Hugging Face logits processors, applied before the strategy's own. The end symbol is banned
    for the first `min_new_tokens`. `keys` names the rows (default 0, 1, …): a sampled text depends on its prompt, its
    key and `seed`, not on the other rows. `tokenizer` is needed by `block_words` alone. The model runs in evaluation
    mode and is left as it was.
    """
    inputs = padded(model, inputs) if not isinstance(inputs, Mapping) else inputs
    arguments = generation_arguments(
        model,
        inputs,
        strategy,
        new_tokens=new_tokens,
        min_new_tokens=min_new_tokens,
        processors=processors,
        seed=seed,
        keys=keys,
        tokenizer=tokenizer,
    )
    was_training = model.training
    model.eval()
    try:
        output = model.generate(**{**inputs, **arguments})
    finally:
        model.train(was_training)
    new = History.of(model, inputs).generated(output).tolist()
    ends = end_ids(model)
    return [ids[: next((at for at, token in enumerate(ids) if token in ends), len(ids))] for ids in new]


def generation_arguments(
    model: Any,
    inputs: Mapping[str, Tensor],
    strategy: Strategy | str = "greedy",
    *,
    new_tokens: int,
    min_new_tokens: int = 0,
    processors: Sequence[Processor] = (),
    seed: int = 0,
    keys: Sequence[int | str] | None = None,
    tokenizer: Any = None,
) -> dict[str, Any]:
    """What Hugging Face needs: `model.generate(**inputs, **generation_arguments(model, inputs, "top_k=40", ...))`.

    Settings, a list of logits processors and, for beam search, the `custom_generate` callable. They belong to these
    inputs and serve one call. The arguments mean what they mean in `generate`.
    """
    strategy = parse(strategy) if isinstance(strategy, str) else strategy
    check_new_tokens(min_new_tokens, new_tokens)
    masked = _checked(model, inputs)
    history = History.of(model, masked, strategy.seen)
    changes = [*processors, *strategy.processors(history)]
    settings = {**NEUTRAL, **_lengths(history.start, masked, min_new_tokens, new_tokens)}
    settings["pad_token_id"] = _pad_id(model)
    settings |= {name: value for name, value in masked.items() if name not in inputs}
    if strategy.samples:
        rows = history.prompt.shape[0]
        keys = range(rows) if keys is None else keys
        if len(keys) != rows:
            raise ValueError(
                f"keys must name every row once, not {counted(len(keys), 'key')} for {counted(rows, 'row')}"
            )
        changes.append(RowNoise(seed, keys, history.start))
    if isinstance(strategy, Beam):
        settings |= {"num_beams": strategy.size, "custom_generate": _beam_search(strategy, tokenizer)}
    if "past_key_values" not in inputs and (cache := roomy_cache(model, settings["max_length"])) is not None:
        settings["past_key_values"] = cache
    settings["logits_processor"] = need("transformers", extra="hf").LogitsProcessorList(changes)
    return settings


def padded(model: Any, prompts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Lists of ids -> input_ids and attention_mask [B, T], padded on the side the model needs."""
    if not len(prompts) or not all(len(prompt) for prompt in prompts):
        raise ValueError(f"inputs must be prompts of at least one id, not {'an empty one' if prompts else 'none'}")
    width = max(len(prompt) for prompt in prompts)
    ids = torch.full((len(prompts), width), _pad_id(model))
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        place = slice(0, len(prompt)) if model.config.is_encoder_decoder else slice(width - len(prompt), width)
        ids[row, place] = torch.tensor(prompt)
        mask[row, place] = 1
    return {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}


def _checked(model: Any, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs with an explicit mask: left to itself, `generate` guesses one from where the padding id stands."""
    inputs = dict(inputs)
    ids = inputs.get("input_ids")
    if ids is None:
        return inputs
    mask = inputs.setdefault("attention_mask", torch.ones_like(ids))
    if not model.config.is_encoder_decoder and bool((mask[:, -1] == 0).any()):
        raise ValueError("attention_mask must end in 1: a causal LM needs its prompts padded on the left")
    if bool((mask.sum(dim=1) == 0).any()):
        raise ValueError("attention_mask must keep at least one id of every row")
    return inputs


def _lengths(start: int, inputs: Mapping[str, Tensor], least: int, most: int) -> dict[str, int | None]:
    """Total lengths, which a checkpoint's own totals cannot contradict; counts of new tokens would be logged about."""
    if "input_ids" not in inputs and "inputs_embeds" in inputs:
        start += inputs["inputs_embeds"].shape[1]  # generate takes them off again
    floor = start + least if least else 0
    return {"max_length": start + most, "min_length": floor, "max_new_tokens": None, "min_new_tokens": None}


def _beam_search(strategy: Beam, tokenizer: Any) -> BeamSearch:
    if strategy.block_words and tokenizer is None:
        raise ValueError(f"block_words={strategy.block_words} looks at decoded words: give tokenizer=")
    blocked = WordBlock(tokenizer, strategy.block_words) if strategy.block_words else None
    return BeamSearch(strategy.gnmt, blocked)


def _pad_id(model: Any) -> int:
    """The padding id; a model without one gets an end id or 0, which the attention mask keeps out of sight."""
    pad = model.generation_config.pad_token_id
    pad = model.config.pad_token_id if pad is None and hasattr(model.config, "pad_token_id") else pad
    return int(pad) if pad is not None and pad >= 0 else min(end_ids(model), default=0)
