"""Hugging Face models and `Trainer`: `loss` for a trainer that computes logits, `attach` for one that need not.

`Trainer(..., compute_loss_func=hf.loss(ScaleGradLoss(0.2)))` is the plain case; `hf.attach(model, ScaleGradLoss(0.2))`
serves any trainer that calls `model(labels=...)`, fused with the output layer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from scalegrad.functional.inputs import check_logits
from scalegrad.integrations.attachment import Attachment, MeanParts, Watch
from scalegrad.integrations.labels import IGNORED, causal_batch
from scalegrad.integrations.output_layer import OutputLayer
from scalegrad.integrations.routers import router_losses, with_router_losses
from scalegrad.nn import ScaleGradLoss
from scalegrad.objectives import TokenLoss, record
from scalegrad.runs import write_text

Model = TypeVar("Model", bound=Any)

_CHANGED = ("accepts_loss_kwargs", "loss_type")  # what Trainer reads
_PLACE = "_scalegrad"  # the attribute of a model that holds its attachment


class ComputeLoss:
    """What `Trainer` calls with the model's output and the labels; see `loss`."""

    def __init__(self, loss: TokenLoss, model: Any) -> None:
        self.loss = loss
        self.model = model
        self.parts: MeanParts | None = None  # of the last training forward

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: int | Tensor | None = None) -> Tensor:
        if labels is None:
            raise ValueError("labels must be in the data set: hf.loss got None")
        if getattr(outputs, "encoder_last_hidden_state", None) is not None:
            raise ValueError(
                "hf.loss is for causal models: Trainer takes the labels away from an encoder–decoder, which then reads "
                "something else; use hf.attach(model, loss)"
            )
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        if torch.is_grad_enabled():
            batch = causal_batch(labels.to(logits.device), num_items=num_items_in_batch)
            options = replace(self.loss.options, return_parts=True)
            value, parts = self.loss.on_head(check_logits(logits, inplace=False), batch, options)
            self.parts = MeanParts.of(parts, batch.targets, options.ignore_index)
            return self._with_router_losses(value, outputs)
        alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
        # Trainer counts GPT-2's first labels too, which are no targets: alone, count here, so that this is a mean.
        batch = causal_batch(labels.to(logits.device), num_items=None if alone else num_items_in_batch)
        return ScaleGradLoss(1.0).on_head(check_logits(logits, inplace=False), batch)  # type: ignore[return-value]

    def _with_router_losses(self, value: Tensor, outputs: Any) -> Tensor:
        routed = next(
            (name for name in ("aux_loss", "router_logits") if getattr(outputs, name, None) is not None), None
        )
        if routed is None:
            return value
        if self.model is None or not router_losses(outputs):
            raise ValueError(
                f"the model's output has {routed}, and hf.loss does not know how much that counts: use "
                "hf.loss(loss, model=model), or hf.attach(model, loss)"
            )
        return with_router_losses(value, outputs, self.model)


def loss(loss: TokenLoss, model: Any = None) -> ComputeLoss:
    """`Trainer(compute_loss_func=hf.loss(ScaleGradLoss(0.2)))`: the objective from a causal model's logits.

    With gradients off it is the plain −log p, so `eval_loss` stays the log of a perplexity. It sees labels only: for
    prompts, packing, encoder–decoders, or without the memory of the logits, `attach`.

    Args:
        loss: the objective.
        model: the model that is trained; needed where it adds router losses, which it weights itself.

    >>> from transformers.modeling_outputs import CausalLMOutput
    >>> outputs = CausalLMOutput(logits=torch.zeros(1, 3, 4))
    >>> labels = torch.tensor([[0, 1, 0]])
    >>> from scalegrad import ScaleGradLoss
    >>> loss(ScaleGradLoss(0.5))(outputs, labels, num_items_in_batch=2)  # (log 5 + log 3) / 2
    tensor(1.3540)
    >>> with torch.no_grad():
    ...     loss(ScaleGradLoss(0.5))(outputs, labels)  # log 4
    tensor(1.3863)
    """
    return ComputeLoss(_checked(loss), None if model is None else inner_model(model))


def attach(model: Model, loss: TokenLoss, *, prompt: bool = False, self_check: bool = True) -> Model:
    """Make `model(labels=...)` return `loss` in place of the model's own, from hidden states where it can.

    With gradients on, the output's `loss` is the objective's sum over `num_items_in_batch` (or the number of targets)
    and there are no logits; with gradients off it is the plain −log p, with logits. Without labels the model is as it
    was, so `generate` works; training it without labels raises, since the objective would be left out. Saving and
    loading know nothing of it, except for a record of the objective in the saved configuration and model card.

    Args:
        model: a Hugging Face model with an output layer, or a PEFT model around one (attach after adding adapters, so
            that these are saved with the record too). Given back.
        loss: the objective. Its `step` is the caller's to set if γ follows a schedule (`StepCallback` does).
        prompt: count as seen also what is no target: a causal model's masked labels, an encoder's input.
        self_check: on the first training batch, compare the attached path at γ = 1 with the model's own loss, and raise
            if they differ: two forward passes without gradients, and once the memory of the logits.
    """
    inner = inner_model(model)
    _checked(loss)
    if not callable(getattr(inner, "get_output_embeddings", None)) or inner.get_output_embeddings() is None:
        raise ValueError(f"model must be a Hugging Face model with an output layer, not {type(inner).__name__}")
    if getattr(inner, "loss_type", None) == "ForMaskedLM":
        raise ValueError(
            f"model must predict the next token: {type(inner).__name__} fills in masked ones, and its loss does not "
            "shift the labels"
        )
    detach(inner)
    attachment = Attachment(inner, loss, prompt, self_check)
    attachment.before = {name: inner.__dict__[name] for name in _CHANGED if name in inner.__dict__}
    inner.__dict__[_PLACE] = attachment
    inner.forward = attachment
    inner.accepts_loss_kwargs = True  # Trainer then counts the targets of the whole step and says so
    if not inner.config.is_encoder_decoder:
        inner.loss_type = "ForCausalLM"  # Trainer then counts the targets after shifting
    trunk = _trunk(inner)
    if trunk is not None:
        trunk.register_forward_pre_hook(Watch(attachment))
    inner.config.scalegrad = record(loss)
    model.save_pretrained = Saver(model, attachment)
    return model


def detach(model: Model) -> Model:
    """Undo `attach`, if there is something to undo. The record of the objective stays if the model was trained."""
    inner = inner_model(model)
    attachment: Attachment | None = inner.__dict__.pop(_PLACE, None)
    if attachment is None:
        return model
    attachment.detached = True
    if inner.__dict__.get("forward") is attachment:
        inner.__dict__.pop("forward")
        if attachment.previous is not None:
            inner.forward = attachment.previous
    for name in _CHANGED:
        inner.__dict__.pop(name, None)
    inner.__dict__.update(attachment.before)
    for saved in (model, inner):
        if isinstance(saved.__dict__.get("save_pretrained"), Saver):
            del saved.save_pretrained
    layer = inner.get_output_embeddings()
    if isinstance(layer.__dict__.get("forward"), OutputLayer):
        del layer.forward
    trunk = _trunk(inner)
    if trunk is not None:
        hooks = trunk._forward_pre_hooks
        for key in [key for key, hook in hooks.items() if isinstance(hook, Watch)]:
            del hooks[key]
    if not attachment.trained:
        inner.config.__dict__.pop("scalegrad", None)
    return model


def attached(model: Any) -> TokenLoss | None:
    """The loss that is attached to `model`, if one is."""
    attachment: Attachment | None = inner_model(model).__dict__.get(_PLACE)
    return None if attachment is None else attachment.loss


def last_parts(model: Any) -> MeanParts | None:
    """Mean −log p and seen mass of the last training forward, as 0-d tensors; None before the first."""
    attachment: Attachment | None = inner_model(model).__dict__.get(_PLACE)
    return None if attachment is None else attachment.parts


def inner_model(model: Any) -> Any:
    """The Hugging Face model inside a PEFT model, a parallel wrapper or a compiled one."""
    while True:
        if hasattr(model, "get_base_model"):  # peft
            model = model.get_base_model()
        elif hasattr(model, "_orig_mod"):  # torch.compile
            model = model._orig_mod
        elif isinstance(getattr(model, "module", None), torch.nn.Module) and not _is_pretrained(model):
            model = model.module  # DDP, FSDP, DeepSpeed
        else:
            return model


def _is_pretrained(model: Any) -> bool:
    """Asked of the class: wrappers such as DeepSpeed's engine hand on what they lack, so they seem to have it all."""
    return hasattr(type(model), "get_output_embeddings")


def _trunk(model: Any) -> torch.nn.Module | None:
    """What runs below the output layer."""
    trunk = model.base_model
    if trunk is not model:
        return trunk  # type: ignore[no-any-return]
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    return decoder if isinstance(decoder, torch.nn.Module) and decoder is not model else None


def _checked(loss: TokenLoss) -> TokenLoss:
    options = getattr(loss, "options", None)
    if options is None:
        raise ValueError(f"loss must be a ScaleGradLoss or an UnlikelihoodLoss, not {type(loss).__name__}")
    if options.reduction != "mean":
        raise ValueError(f"loss must have reduction='mean' here (sum / number of items), not {options.reduction!r}")
    if options.ignore_index != IGNORED:
        raise ValueError(f"loss must have ignore_index={IGNORED}, as every trainer here, not {options.ignore_index}")
    for name in ("softcap", "logit_scale"):
        if getattr(options, name) is not None:
            raise ValueError(f"loss must leave {name} to the model, which is asked for its own: pass none")
    return loss


def __getattr__(name: str) -> Any:
    """`hf.StepCallback`, which needs transformers, loads when it is asked for."""
    if name == "StepCallback":
        from scalegrad.integrations.callback import StepCallback

        return StepCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_BEGIN, _END = "<!-- scalegrad -->", "<!-- /scalegrad -->"
_FRONT = "---\nlibrary_name: transformers\ntags:\n- scalegrad\n---\n\n"
_NAMES = {"mle": "maximum likelihood", "ul": "token-level unlikelihood", "sg": "ScaleGrad"}


def section(record: Mapping[str, Any]) -> str:
    """A model card's section from `objective.record`.

    >>> print(section({"objective": "sg", "gamma": 0.2, "discourage": "Seen()", "options": {}}))
    <!-- scalegrad -->
    ## Training objective
    <BLANKLINE>
    Trained with ScaleGrad by scalegrad.
    <BLANKLINE>
    | | |
    |---|---|
    | gamma | 0.2 |
    | discourage | `Seen()` |
    <!-- /scalegrad -->
    """
    shown = {name: value for name, value in record.items() if name not in ("objective", "options")}
    shown.update(record.get("options", {}))
    rows = [f"| {name} | {f'`{value}`' if isinstance(value, str) else value} |" for name, value in shown.items()]
    name = _NAMES.get(record["objective"], record["objective"])
    intro = ["## Training objective", "", f"Trained with {name} by scalegrad.", "", "| | |", "|---|---|"]
    return "\n".join([_BEGIN, *intro, *rows, _END])


def write_card(folder: Path, record: Mapping[str, Any]) -> None:
    """Put the section into `folder/README.md`, in place of an earlier one; the rest of a card stays."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else _FRONT
    text = re.sub(f"{_BEGIN}.*?{_END}\n?", "", text, flags=re.DOTALL).rstrip("\n")
    write_text(path, f"{text}\n\n{section(record)}\n")


class Saver:
    """Stands in `model.save_pretrained` while an objective is attached: saves as always, then adds to the card."""

    def __init__(self, model: Any, attachment: Any) -> None:
        self.model = model
        self.attachment = attachment

    def __call__(self, save_directory: Any, *args: Any, **kwargs: Any) -> Any:
        save = type(self.model).save_pretrained
        saved = save(self.model, save_directory, *args, **kwargs)
        named = inspect.signature(save).bind(self.model, save_directory, *args, **kwargs).arguments
        if named.get("is_main_process", True) and not self.attachment.detached:
            write_card(Path(save_directory), self.attachment.model.config.scalegrad)
        return saved
