"""An objective inside a model: what stands in the place of its forward while one is attached."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalegrad.functional.inputs import Batch, check_linear, check_logits
from scalegrad.functional.losses import Parts
from scalegrad.integrations.decoder_inputs import decoder_inputs
from scalegrad.integrations.first_batch import (
    compare,
    has_room,
    no_traces,
    own_copies,
    refuse_late_attachment,
    refuse_lengths,
    refuse_parts_of_rows,
    refuse_sequence_parallelism,
    refuse_unknown_labels,
    refuse_wrong_labels,
)
from scalegrad.integrations.labels import IGNORED, MARKS, causal_batch, encoder_decoder_batch, logit_positions
from scalegrad.integrations.output_layer import Finish, OutputLayer, Request, find_finish, is_plain
from scalegrad.integrations.routers import with_router_losses
from scalegrad.nn import ScaleGradLoss
from scalegrad.objectives import TokenLoss
from scalegrad.ops.dispatch import Linear, Logits

_OF_THE_LOSS = ("labels", "shift_labels", "num_items_in_batch", "logits_to_keep")  # arguments a model runs without


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

    def __init__(self, model: Any, loss: TokenLoss, prompt: bool, self_check: bool) -> None:
        self.model = model
        self.loss = loss
        self.prompt = prompt
        self.self_check = self_check
        self.previous = model.__dict__.get("forward")  # somebody's before us, such as a device hook
        self.names = tuple(inspect.signature(type(model).forward).parameters)[1:]
        self.parts: MeanParts | None = None
        self.detached = False  # by then another wrapper may hold this one: it goes on as if it were not there
        self.running = False
        self.trained = False
        self.finish: Finish | None = None
        self.fused: bool | None = None  # unknown until the first training forward
        self.request: Request | None = None
        self.before: dict[str, Any] = {}  # the model's attributes that attaching changed

    @property
    def __signature__(self) -> inspect.Signature:  # trainers drop the columns that a forward does not name
        whole = inspect.signature(type(self.model).forward)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = {**dict(zip(self.names, args, strict=False)), **kwargs}
        unlabelled = call.get("labels") is None and call.get("shift_labels") is None
        if self.detached or unlabelled or call.get("fused_lm_head"):
            self._refuse_other_losses()
            return self._run(call)
        as_tuple = call.pop("return_dict", None) is False
        if "use_cache" in self.names:
            call["use_cache"] = False  # with one, models let the documents of a packed row read each other
        arguments = {name: value for name, value in call.items() if name not in _OF_THE_LOSS}
        positions = self._positions(call)
        batch = self._batch(call, positions, arguments)
        if torch.is_grad_enabled():
            self._look_once(call, arguments, batch)
            outputs = self._objective(arguments, batch, self.loss)
        else:
            outputs = self._nll(arguments, batch)
            if positions is not None:
                outputs = _with(outputs, logits=outputs.logits.take_along_dim(positions[..., None], 1))
        return outputs.to_tuple() if as_tuple else outputs

    # ---- the three ways to run ---------------------------------------------------------------------------------------

    def _objective(self, arguments: dict[str, Any], batch: Batch, loss: TokenLoss) -> Any:
        """`loss` from hidden states, or from logits where the output layer is not plain."""
        routed = arguments.get("output_router_logits")
        routed = getattr(self.model.config, "output_router_logits", False) if routed is None else routed
        balanced = self.model.config.is_encoder_decoder and routed  # NLLB-MoE balances its experts for labels only
        if self.fused:
            if balanced:
                arguments = {**arguments, "labels": batch.targets[:1, :0]}  # as many as there are logits
            self.request = request = Request(self, batch, loss)
            outputs = self._run(arguments)
            if request.value is None:
                raise RuntimeError(f"{type(self.model).__name__} did not call its output layer")
            tail = outputs.logits[..., :0].sum().to(request.value.dtype)  # 0: ties the loss to what wraps the layer
            value, logits = request.value + tail, None
        else:
            outputs = self._run({**arguments, "labels": batch.targets} if balanced else arguments)
            logits = outputs.logits
            value = self._on_head(check_logits(logits, inplace=False), batch, loss, None)
        return _with(outputs, loss=with_router_losses(value, outputs, self.model), logits=logits)

    def _nll(self, arguments: dict[str, Any], batch: Batch) -> Any:
        """Plain −log p, whatever the objective, with the logits."""
        outputs = self._run(arguments)
        logits = outputs.logits
        loss = ScaleGradLoss(1.0).on_head(check_logits(logits, inplace=False), _moved(batch, logits.device))
        return _with(outputs, loss=loss)

    def _run(self, arguments: dict[str, Any]) -> Any:
        """The model as it is."""
        self.running = True
        try:
            if self.previous is not None:
                return self.previous(**arguments)
            return type(self.model).forward(self.model, **arguments)
        finally:
            self.running = False
            self.request = None

    # ---- what they are made of ---------------------------------------------------------------------------------------

    def _positions(self, call: dict[str, Any]) -> Tensor | None:
        """Where a causal model is to keep its logits. It runs without: the objective reads whole rows."""
        rows = call.get("input_ids") if call.get("input_ids") is not None else call.get("inputs_embeds")
        if rows is None or self.model.config.is_encoder_decoder:
            return None
        return logit_positions(call.get("logits_to_keep"), rows.shape[:2], rows.device)

    def _batch(self, call: dict[str, Any], positions: Tensor | None, arguments: dict[str, Any]) -> Batch:
        """Targets and history; an encoder–decoder's decoder input is made from the labels, as the model would."""
        labels, ids, items = call.get("labels"), call.get("input_ids"), call.get("num_items_in_batch")
        if not self.model.config.is_encoder_decoder:
            marks = {name: call[name] for name in MARKS if name in call}
            shifted = call.get("shift_labels")
            return causal_batch(
                labels,
                shift_labels=shifted,
                input_ids=ids,
                positions=positions,
                prompt=self.prompt,
                num_items=items,
                **marks,
            )
        if labels is None:
            raise ValueError("labels must be given to an encoder–decoder: shift_labels is for causal models")
        if call.get("decoder_input_ids") is None and call.get("decoder_inputs_embeds") is None:
            arguments.update(decoder_inputs(self.model, labels, call.get("decoder_attention_mask")))
        mask = call.get("attention_mask")
        return encoder_decoder_batch(labels, input_ids=ids, attention_mask=mask, prompt=self.prompt, num_items=items)

    def _on_head(self, head: Logits | Linear, batch: Batch, loss: TokenLoss, finish: Finish | None) -> Tensor:
        """`loss` with its own options and what the model does to its logits where they are not given whole."""
        cap, scale = (None, None) if finish is None else (finish.softcap, finish.logit_scale)
        options = replace(loss.options, softcap=cap, logit_scale=scale, return_parts=True)
        batch = _moved(batch, head[0].device)
        value: Tensor
        value, parts = loss.on_head(head, batch, options)
        self.parts = MeanParts.of(parts, batch.targets, options.ignore_index)
        return value

    def linear(self, layer: nn.Linear, hidden: Tensor, batch: Batch, loss: TokenLoss) -> Tensor:
        """`loss` from what goes into the output layer."""
        finish = self.finish or Finish()
        bias: Tensor | None = layer.bias
        if finish.bias is not None:
            extra = finish.extra_bias(self.model).to(hidden.dtype)
            bias = extra if bias is None else bias + extra
        return self._on_head(check_linear(hidden, layer.weight, bias, None), batch, loss, finish)

    # ---- looking before trusting -------------------------------------------------------------------------------------

    def _look_once(self, call: dict[str, Any], arguments: dict[str, Any], batch: Batch) -> None:
        """Looked up on each call: an adapter or a resized vocabulary puts another layer in its place."""
        self.trained = True
        ready = type(self.model.get_output_embeddings().__dict__.get("forward")) is OutputLayer
        if self.fused is None or (self.fused and not ready):
            self._look(call, arguments, batch)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _look(self, call: dict[str, Any], arguments: dict[str, Any], batch: Batch) -> None:
        """On the first training batch: is it as it must be, how is the output layer used, is the loss the right one?"""
        self.fused = None
        self._refuse(call, batch)
        checked = self.self_check and has_room(self.model, batch.targets)
        layer = self.model.get_output_embeddings()
        if type(layer.__dict__.get("forward")) is OutputLayer:  # of a look that was interrupted
            del layer.forward
        plain = is_plain(layer)
        problem = "" if plain else f"its output layer is a {type(layer).__name__} with a forward of its own"
        own: Any = None
        if plain or checked:
            if plain:
                layer.forward = OutputLayer(self, layer)
            self.request = request = Request(self, whole=checked)
            own = self._own_forward(call, batch) if checked else self._probe(arguments)
            if plain:
                problem = self._find_finish(request, own)
        if plain and problem:
            del layer.forward
        if problem:
            name = type(self.model).__name__
            warnings.warn(f"scalegrad: {name} trains from whole logits, which takes memory: {problem}", stacklevel=2)
        self.fused = not problem
        if checked:
            try:
                self._check(own, call, arguments, batch._replace(num_items=None))
            except ValueError:
                self.fused = None  # so that the next batch is refused as well
                raise
            if own.logits.is_cuda:
                own = None
                torch.cuda.empty_cache()  # what held the logits may be too large for anything else

    def _refuse(self, call: dict[str, Any], batch: Batch) -> None:
        causal = not self.model.config.is_encoder_decoder
        refuse_sequence_parallelism()
        refuse_late_attachment(causal)
        if not causal:
            return
        refuse_wrong_labels(call.get("labels"), call.get("shift_labels"))
        refuse_lengths(call.get("cu_seq_lens_q"), batch.targets.numel())
        if call.get("past_key_values") is None:
            refuse_parts_of_rows(call.get("position_ids"), call.get("attention_mask"))
        labels = call["shift_labels"] if call.get("labels") is None else call["labels"]
        if self._positions(call) is not None and labels.shape != batch.targets.shape:
            spread = _labels_of(batch.targets) if self.prompt or batch.context is None else batch.context
            refuse_unknown_labels(spread, call["input_ids"])

    def _probe(self, arguments: dict[str, Any]) -> Any:
        """One forward pass that leaves no trace, neither in the model nor in what it is called with."""
        with no_traces(self.model):
            return self._run(own_copies(arguments))

    def _own_forward(self, call: dict[str, Any], batch: Batch) -> Any:
        """The model with its own loss, the mean over the batch."""
        own = {name: x for name, x in call.items() if name not in ("num_items_in_batch", "logits_to_keep")}
        if self._positions(call) is not None:
            own.pop("shift_labels", None)
            own["labels"] = _labels_of(batch.targets)
        elif own.get("labels") is None:
            own["labels"] = own["shift_labels"]  # a model asks for labels before it uses these
        attached_type, own_type = self.model.loss_type, self.before.get("loss_type")
        if own_type is not None:
            self.model.loss_type = own_type
        try:
            return self._probe(own)
        finally:
            self.model.loss_type = attached_type

    def _check(self, own: Any, call: dict[str, Any], arguments: dict[str, Any], batch: Batch) -> None:
        """The attached path with γ = 1, against the model's own loss."""
        with no_traces(self.model):
            attached = self._objective(own_copies(arguments), batch, ScaleGradLoss(1.0)).loss
            compare(self.model, own, attached, _moved(batch, own.logits.device), call.get("labels"))

    def _find_finish(self, request: Request, outputs: Any) -> str:
        """What stands against fusing, or nothing."""
        if len(request.rows) != 1:
            return f"it gives its output layer [batch, steps, width] {len(request.rows)} times"
        with torch.no_grad():
            self.finish = find_finish(self.model, request.rows[0], outputs.logits[0, 0])
        return "" if self.finish is not None else "it changes what its output layer gives in its own way"

    def _refuse_other_losses(self) -> None:
        if self.model.training and torch.is_grad_enabled() and not self.detached:
            raise ValueError(
                "a model with an objective attached must be given labels while it trains: whatever computes its loss "
                "elsewhere (label smoothing, compute_loss_func, TRL's fused output layer) would leave the objective "
                "out; hf.detach(model) first if that is meant"
            )


class Watch:
    """Before the model's trunk runs: nobody may train it around the objective."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment

    def __call__(self, trunk: nn.Module, inputs: Any) -> None:
        mine = self.attachment
        if not trunk.training or not torch.is_grad_enabled() or mine.running or mine.detached:
            return
        if _is_liger(mine.model.__dict__.get("forward")):
            raise ValueError(
                "Liger's kernels have replaced the model's forward after the objective was attached, and its own loss "
                "would be trained: leave out use_liger_kernel=True, or apply Liger's kernels before hf.attach"
            )
        raise ValueError(
            "this model has an objective attached, and something trains it around its forward: its "
            f"{type(trunk).__name__} was called directly, as TRL's fused output layer does, and the loss would be "
            "another; use integrations.trl.ScaleGradSFTTrainer for TRL, or hf.detach(model)"
        )


def _is_liger(forward: Any) -> bool:
    """Also inside what Accelerate wraps around it for mixed precision."""
    while forward is not None:
        if (getattr(forward, "__module__", None) or "").startswith("liger_kernel"):
            return True
        forward = getattr(forward, "__wrapped__", None)
    return False


def _moved(batch: Batch, device: torch.device) -> Batch:
    """Where the output layer is: a model spread over devices may have its labels on another."""
    return batch._replace(**{key: x.to(device) for key, x in batch._asdict().items() if isinstance(x, Tensor)})


def _labels_of(targets: Tensor) -> Tensor:
    """Labels [B, T] that a shift turns into `targets`."""
    return F.pad(targets, (1, 0), value=IGNORED)[:, :-1]


def _with(outputs: Any, **changed: Any) -> Any:
    """A model's output with some fields replaced."""
    return type(outputs)(**{**outputs, **changed})
