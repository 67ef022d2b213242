"""An objective inside a model: what stands in the place of its forward while one is attached."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from scalegrad.functional.heads import LinearHead, LogitsHead
from scalegrad.functional.losses import Batch, Parts
from scalegrad.functional.options import Options
from scalegrad.integrations.labels import causal_batch, encoder_decoder_batch
from scalegrad.integrations.objective import TokenLoss
from scalegrad.integrations.output_layer import Finish, find_finish, is_plain
from scalegrad.nn import ScaleGradLoss


class MeanParts(NamedTuple):
    """What the last training forward saw, for logging: detached 0-d tensors."""

    nll: Tensor  # mean −log p of the targets: the log of the perplexity
    seen_mass: Tensor  # mean probability of all discouraged tokens together
    tokens: Tensor  # how many targets

    @classmethod
    def of(cls, parts: Parts, targets: Tensor, ignored: int) -> MeanParts:
        """The means over the targets that count."""
        tokens = (targets != ignored).sum()
        some = tokens.clamp(min=1)
        return cls(parts.nll.sum() / some, parts.seen_mass.sum() / some, tokens)

    def sums(self) -> Tensor:
        """[3]: NLL, seen mass and number of targets, as they add up over batches."""
        return torch.stack([self.nll * self.tokens, self.seen_mass * self.tokens, self.tokens.float()])


class Attachment:
    """Stands in `model.forward`: the same call, with the objective in place of the model's own loss.

    A plain object, so that neither it nor the loss becomes part of the model's state; it holds the model it belongs to,
    so that a copy or a pickle of the model takes its own attachment along.
    """

    def __init__(self, model: Any, loss: TokenLoss, prompt: bool) -> None:
        self.model = model
        self.loss = loss
        self.prompt = prompt
        self.previous = model.__dict__.get("forward")  # somebody's before us, such as a device hook
        self.names = tuple(inspect.signature(type(model).forward).parameters)[1:]
        self.parts: MeanParts | None = None
        self.detached = False  # by then another wrapper may hold this one: it goes on as if it were not there
        self.running = False
        self.trained = False
        self.finish: Finish | None = None
        self.fused: bool | None = None  # unknown until the first training forward
        self.request: _Request | None = None
        self.before: dict[str, Any] = {}  # the model's attributes that attaching changed

    @property
    def __signature__(self) -> inspect.Signature:  # trainers drop the columns that a forward does not name
        whole = inspect.signature(type(self.model).forward)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(self.names, args, strict=False)), **kwargs}
        unlabelled = given.get("labels") is None and given.get("shift_labels") is None
        if self.detached or unlabelled or given.get("fused_lm_head"):
            self._refuse_other_losses()
            return self._run(given)
        as_tuple = given.pop("return_dict", None) is False
        batch = self._batch(given)
        for name in ("labels", "shift_labels", "num_items_in_batch"):
            given.pop(name, None)
        if "use_cache" in self.names:
            given["use_cache"] = False  # with one, models let the documents of a packed row read each other
        outputs = self._objective(given, batch) if torch.is_grad_enabled() else self._nll(given, batch)
        return outputs.to_tuple() if as_tuple else outputs

    # ---- the three ways to run ---------------------------------------------------------------------------------------

    def _objective(self, given: dict[str, Any], batch: Batch) -> Any:
        """The objective from hidden states, or from logits where the output layer is not plain."""
        self.trained = True
        if self._can_fuse(given):
            self.request = request = _Request(self, batch)
            outputs = self._run(given)
            if request.loss is None:
                raise RuntimeError(f"{type(self.model).__name__} did not call its output layer")
            tail = outputs.logits[..., :0].sum().to(request.loss.dtype)  # 0: ties the loss to what wraps the layer
            loss = request.loss + tail
            outputs = _with(outputs, loss=self._with_router(loss, outputs), logits=None)
        else:
            outputs = self._run(given)
            loss = self._on_head(LogitsHead(outputs.logits, False), batch, self._options(None))
            outputs = _with(outputs, loss=self._with_router(loss, outputs))
        return outputs

    def _nll(self, given: dict[str, Any], batch: Batch) -> Any:
        """Plain −log p, whatever the objective, with the logits."""
        outputs = self._run(given)
        logits = outputs.logits
        loss = ScaleGradLoss(1.0).on_head(LogitsHead(logits, False), _moved(batch, logits.device))
        return _with(outputs, loss=loss)

    def _run(self, given: dict[str, Any]) -> Any:
        """The model as it is."""
        self.running = True
        try:
            if self.previous is not None:
                return self.previous(**given)
            return type(self.model).forward(self.model, **given)
        finally:
            self.running = False
            self.request = None

    # ---- what they are made of ---------------------------------------------------------------------------------------

    def _batch(self, given: dict[str, Any]) -> Batch:
        """Targets and history; an encoder–decoder's decoder input is made from the labels, as the model would."""
        common: dict[str, Any] = {
            "input_ids": given.get("input_ids"),
            "attention_mask": given.get("attention_mask"),
            "prompt": self.prompt,
            "num_items": given.get("num_items_in_batch"),
        }
        labels = given.get("labels")
        if not self.model.config.is_encoder_decoder:
            shifted, positions = given.get("shift_labels"), given.get("position_ids")
            return causal_batch(labels, shift_labels=shifted, position_ids=positions, **common)
        if labels is None:
            raise ValueError("labels must be given to an encoder–decoder: shift_labels is for causal models")
        if given.get("decoder_input_ids") is None and given.get("decoder_inputs_embeds") is None:
            made = self.model.prepare_decoder_input_ids_from_labels(labels)
            given["decoder_input_ids"] = made
            if self.model.config.model_type == "encoder-decoder" and given.get("decoder_attention_mask") is None:
                given["decoder_attention_mask"] = (made != self.model.config.pad_token_id).to(made.dtype)
        return encoder_decoder_batch(labels, **common)

    def _options(self, finish: Finish | None) -> Options:
        """The loss's own, and what the model does to its logits where they are not given whole."""
        cap, scale = (None, None) if finish is None else (finish.softcap, finish.logit_scale)
        return replace(self.loss.options, softcap=cap, logit_scale=scale, return_parts=True)

    def _on_head(self, head: LinearHead | LogitsHead, batch: Batch, options: Options) -> Tensor:
        batch = _moved(batch, head.values.device)
        loss, parts = self.loss.on_head(head, batch, options)
        self.parts = MeanParts.of(parts, batch.targets, options.ignore_index)
        total: Tensor = loss
        return total

    def linear(self, layer: nn.Linear, hidden: Tensor, batch: Batch) -> Tensor:
        """The objective from what goes into the output layer."""
        finish = self.finish or Finish()
        bias: Tensor | None = layer.bias
        if finish.bias is not None:
            extra = finish.extra_bias(self.model).to(hidden.dtype)
            bias = extra if bias is None else bias + extra
        return self._on_head(LinearHead.of(hidden, layer.weight, bias), batch, self._options(finish))

    def _with_router(self, loss: Tensor, outputs: Any) -> Tensor:
        """Mixtures of experts add what keeps their experts busy, as their own forward does."""
        extra = getattr(outputs, "aux_loss", None)
        if extra is None:
            return loss
        weight: float = self.model.config.get_text_config(decoder=True).router_aux_loss_coef
        balance: Tensor = extra.to(loss.device)
        return loss + weight * balance

    # ---- looking before trusting -------------------------------------------------------------------------------------

    def _can_fuse(self, given: dict[str, Any]) -> bool:
        """Looked up on each call: an adapter or a resized vocabulary puts another layer in its place."""
        ready = type(self.model.get_output_embeddings().__dict__.get("forward")) is OutputLayer
        if self.fused is None or (self.fused and not ready):
            self._look(given)
        return bool(self.fused)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _look(self, given: dict[str, Any]) -> None:
        """How does the model use its output layer? Its first training step finds out."""
        layer = self.model.get_output_embeddings()
        if type(layer.__dict__.get("forward")) is OutputLayer:  # of a look that was interrupted
            del layer.forward
        problem = f"its output layer is a {type(layer).__name__} with a forward of its own"
        if is_plain(layer):
            layer.forward = OutputLayer(self, layer)
            problem = self._try(given)
            if problem:
                del layer.forward
        self.fused = not problem
        if problem:
            name = type(self.model).__name__
            warnings.warn(f"scalegrad: {name} trains from whole logits, which takes memory: {problem}", stacklevel=2)

    def _try(self, given: dict[str, Any]) -> str:
        """One forward pass without gradients and with one row of logits; what stands against fusing, or nothing."""
        self.request = request = _Request(self, None)
        device = next(self.model.parameters()).device
        random = torch.random.fork_rng([device] if device.type == "cuda" else [])
        with torch.no_grad(), random, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "None of the inputs have requires_grad")  # reentrant checkpoints
            outputs = self._run(given)
        if len(request.rows) != 1:
            return f"it gives its output layer [batch, steps, width] {len(request.rows)} times"
        self.finish = find_finish(self.model, request.rows[0], outputs.logits[0, 0])
        return "" if self.finish is not None else "it changes what its output layer gives in its own way"

    def _refuse_other_losses(self) -> None:
        if self.model.training and torch.is_grad_enabled() and not self.detached:
            raise ValueError(
                "a model with an objective attached must be given labels while it trains: whatever computes its loss "
                "elsewhere (label smoothing, compute_loss_func, TRL's fused output layer) would leave the objective "
                "out; hf.detach(model) first if that is meant"
            )


class _Request:
    """What a forward pass asks of the output layer: the loss of a batch, or (no batch) one row of logits."""

    def __init__(self, attachment: Attachment, batch: Batch | None) -> None:
        self.attachment = attachment
        self.batch = batch
        self.loss: Tensor | None = None
        self.rows: list[Tensor] = []


class OutputLayer:
    """Stands in the output layer's forward, inside whatever gathers its weight: answers a request, if there is one."""

    def __init__(self, attachment: Attachment, layer: nn.Linear) -> None:
        self.attachment = attachment
        self.layer = layer

    def __call__(self, input: Tensor) -> Tensor:
        request = self.attachment.request
        if request is None:
            return nn.Linear.forward(self.layer, input)
        if request.batch is None and input.dim() != 3:
            return nn.Linear.forward(self.layer, input)
        if request.batch is None:
            row = nn.Linear.forward(self.layer, input[:1, :1])
            request.rows.append(row[0, 0])
            return row
        loss = self.attachment.linear(self.layer, input, request.batch)
        request.loss = loss
        nothing = input.new_empty(1, 0, self.layer.weight.shape[0])
        return nothing + loss.reshape(1)[:0].sum().to(nothing.dtype)


class Watch:
    """Before the model's trunk runs: nobody may train it around the objective."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment

    def __call__(self, trunk: nn.Module, inputs: Any) -> None:
        mine = self.attachment
        if trunk.training and torch.is_grad_enabled() and not (mine.running or mine.detached):
            raise ValueError(
                "this model has an objective attached, and something trains it around its forward: its "
                f"{type(trunk).__name__} was called directly, as TRL's fused output layer does, and the loss would be "
                "another; use integrations.trl.ScaleGradSFTTrainer for TRL, or hf.detach(model)"
            )


def _moved(batch: Batch, device: torch.device) -> Batch:
    """Where the output layer is: a model spread over devices may have its labels on another."""
    return batch._replace(**{key: x.to(device) for key, x in batch._asdict().items() if isinstance(x, Tensor)})


def _with(outputs: Any, **changed: Any) -> Any:
    """A model's output with some fields replaced."""
    return type(outputs)(**{**outputs, **changed})
