"""The first training batch: what is refused on it, and the self-check at γ = 1 against the model's own loss."""

import gc
import types
import weakref

import peft
import pytest
import torch
import transformers
from accelerate.state import AcceleratorState

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad.integrations import first_batch, hf
from tests.integrations import architectures, tiny
from tests.integrations.training import attached, descend, logits_loss, trained, untrained

LLAMA = tiny.padded(tiny.examples("llama"))
IDS = torch.tensor([[5, 6, 7, 5, 8, 6, 9, 5]])


# ---- refused ---------------------------------------------------------------------------------------------------------


def test_labels_equal_to_shift_labels_are_refused():
    model = attached("llama", ScaleGradLoss(0.2))
    shifted = torch.nn.functional.pad(IDS, (0, 1), value=-100)[:, 1:]
    with pytest.raises(ValueError, match=r"labels must be .*equal to shift_labels"):
        model(input_ids=IDS, labels=shifted, shift_labels=shifted)
    both = model(input_ids=IDS, labels=IDS, shift_labels=shifted).loss.item()
    assert both == pytest.approx(model(input_ids=IDS, labels=IDS).loss.item(), abs=1e-12)


def shard(model, part, **others):
    """The second half of a row, as a context-parallel process gets it."""
    half = IDS.shape[1] // 2
    places = torch.arange(IDS.shape[1])[None, half:] if part else torch.arange(half)[None]
    ids = IDS[:, places[0]]
    return model(input_ids=ids, labels=ids, position_ids=places, **others)


def test_a_part_of_a_row_is_refused():
    model = attached("llama", ScaleGradLoss(0.2))
    with pytest.raises(ValueError, match=r"position_ids must begin at 0 in each row.*begins at 4"):
        shard(model, 1)
    assert shard(model, 0).loss.requires_grad


@pytest.mark.parametrize("places", [[1, 1, 0, 1, 2], [0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
def test_padding_on_the_left_is_no_part_of_a_row(places):
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    labels = torch.where(mask > 0, IDS[:, :5], -100)
    model = attached("llama", ScaleGradLoss(0.2))
    model(input_ids=IDS[:, :5], attention_mask=mask, labels=labels, position_ids=torch.tensor([places]))


@pytest.mark.parametrize("kind", ["cp_size", "sp_size"])
def test_accelerates_parallelism_is_refused(kind, monkeypatch):
    config = types.SimpleNamespace(**{"cp_size": 1, "sp_size": 1, kind: 2})
    monkeypatch.setitem(AcceleratorState._shared_state, "parallelism_config", config)
    with pytest.raises(ValueError, match="splits each row over 2 processes"):
        attached("llama", ScaleGradLoss(0.2))(**LLAMA)


def test_torchs_context_parallel_is_refused(monkeypatch):
    attention = torch.nn.functional.scaled_dot_product_attention

    def split(*args, **kwargs):
        return attention(*args, **kwargs)

    split.__module__ = "torch.distributed.tensor.experimental._context_parallel._attention"
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", split)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    with pytest.raises(ValueError, match="context_parallel splits each row over 4 processes"):
        attached("llama", ScaleGradLoss(0.2))(**LLAMA)


def test_lengths_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="cu_seq_lens_q must end at the number of labels, 8, not at 6"):
        attached("llama", ScaleGradLoss(0.2))(input_ids=IDS, labels=IDS, cu_seq_lens_q=torch.tensor([0, 6]))


def test_attaching_after_trainer_was_built_is_refused(tmp_path):
    """Trainer would count GPT-2's first labels as targets; Llama it counts rightly either way."""
    late = tiny.model("gpt2")
    trainer = untrained(late, tiny.examples("gpt2"), tmp_path)
    hf.attach(late, ScaleGradLoss(0.2))
    with pytest.raises(ValueError, match="attached after Trainer was built"):
        trainer.train()
    _, expected = trained(attached("llama", ScaleGradLoss(0.2)), tiny.examples("llama"), tmp_path)
    late = tiny.model("llama")
    trainer = untrained(late, tiny.examples("llama"), tmp_path)
    hf.attach(late, ScaleGradLoss(0.2))
    trainer.train()
    assert [entry["loss"] for entry in trainer.state.log_history if "loss" in entry] == expected


def test_ligers_flag_after_attach_says_so():
    """What Trainer(use_liger_kernel=True) does to a model: a forward of its own in the place of the attached one."""
    model = attached("llama", ScaleGradLoss(0.2))

    def lce_forward(self, input_ids, labels=None, **others):
        return self.model(input_ids)

    lce_forward.__module__ = "liger_kernel.transformers.model.llama"
    model.forward = types.MethodType(lce_forward, model)
    with pytest.raises(ValueError, match="Liger's kernels have replaced the model's forward"):
        model(**LLAMA)


# ---- the caller's cache ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checked", [False, True])
def test_prefix_tuning(checked):
    """The first loss is that of all others, and has a gradient: no probe reads or extends the prefix in the cache."""
    torch.manual_seed(3)
    settings = peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = peft.get_peft_model(tiny.model("llama"), settings).double()
    batch = tiny.padded(tiny.examples("llama"))
    with torch.no_grad():
        own = model(**batch)
    labels = batch["labels"]
    expected = ScaleGradLoss(0.2)(own.logits[:, :-1], labels[:, 1:], context=labels[:, :-1]).item()
    hf.attach(model, ScaleGradLoss(0.2), self_check=checked)
    for _ in range(2):
        gradients, loss = descend(model, batch)
        assert loss.item() == pytest.approx(expected, abs=1e-12)
        assert all(float(gradient.abs().max()) > 0 for gradient in gradients.values())


# ---- the self-check --------------------------------------------------------------------------------------------------


class WithExtra(transformers.LlamaForCausalLM):
    """A model whose own loss has a part that nobody else knows."""

    def forward(self, *args, labels=None, **kwargs):
        outputs = super().forward(*args, labels=labels, **kwargs)
        if outputs.loss is not None:
            outputs.loss = outputs.loss + 0.01
        return outputs


def with_extra(dtype=torch.float64):
    config = tiny.model("llama").config
    torch.manual_seed(0)
    return WithExtra(config).to(dtype).train()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_an_unknown_part_of_the_loss_is_found(dtype):
    """With both numbers; and again on the next batch."""
    model = with_extra(dtype)
    own = model(**LLAMA).loss.item()
    hf.attach(model, ScaleGradLoss(0.2))
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{own:.8g}.* at γ = 1 is {str(own - 0.01)[:5]}.*self_check=False"):
            model(**LLAMA)
    loss = hf.attach(model, ScaleGradLoss(0.2), self_check=False)(**LLAMA).loss
    assert loss.requires_grad


def test_logits_changed_after_the_first_row_are_found():
    """The probe reads one row of logits, which this model leaves alone."""

    class Late(transformers.LlamaForCausalLM):
        def forward(self, *args, labels=None, **kwargs):
            outputs = super().forward(*args, **kwargs)
            later = torch.arange(outputs.logits.shape[1]) > 0
            outputs.logits = torch.where(later[:, None], outputs.logits * 2, outputs.logits)
            if labels is not None:
                outputs.loss = self.loss_function(outputs.logits, labels, self.config.vocab_size)
            return outputs

    torch.manual_seed(0)
    model = Late(tiny.model("llama").config).double()
    torch.nn.init.normal_(model.lm_head.weight)
    with pytest.raises(ValueError, match="its output layer or its inputs are used in a way"):
        hf.attach(model, ScaleGradLoss(0.2))(**LLAMA)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("name", ["gpt2", "bart", "t5", "gemma2", "granite", "mixtral"])
def test_rounding_is_no_difference(name, dtype):
    """Logits of a trained model's size, in every dtype, and under autocast."""
    model = tiny.model(name, dtype=dtype)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(40)
    hf.attach(model, UnlikelihoodLoss(0.5, label_smoothing=0.1))
    batch = tiny.padded(tiny.examples(name))
    if dtype == torch.float32:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(**batch)
    else:
        model(**batch)
    assert model._scalegrad.fused is True


def test_it_leaves_no_trace():
    """Random states, dropout, and buffers that a forward changes."""

    class Counting(transformers.GPT2LMHeadModel):
        def __init__(self, config):
            super().__init__(config)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, *args, **kwargs):
            self.calls += 1
            return super().forward(*args, **kwargs)

    losses = []
    for checked in (True, False):
        torch.manual_seed(0)
        model = hf.attach(Counting(tiny.model("gpt2", resid_pdrop=0.5).config).train(), ScaleGradLoss(0.2))
        model._scalegrad.self_check = checked
        torch.manual_seed(7)
        losses.append((model(**tiny.padded(tiny.examples("gpt2"))).loss.item(), torch.rand(1).item()))
        assert model.calls.item() == 1
    assert losses[0] == losses[1]


def test_the_first_graph_is_freed_with_its_loss():
    """No reference cycle may keep the activations of the first batch alive until the garbage collector runs."""
    gc.disable()
    try:
        model = hf.attach(tiny.model("llama").train(), ScaleGradLoss(0.2))
        loss = model(**tiny.padded(tiny.examples("llama"))).loss
        freed = weakref.ref(loss)
        del loss
        assert freed() is None
    finally:
        gc.enable()


def test_without_memory_it_is_left_out(monkeypatch):
    monkeypatch.setattr(first_batch, "free_memory", lambda device: 1000)
    model = hf.attach(with_extra(), ScaleGradLoss(0.2))
    with pytest.warns(UserWarning, match="no memory for the self-check"):
        loss = model(**LLAMA).loss
    assert loss.item() == pytest.approx(logits_loss(tiny.model("llama"), ScaleGradLoss(0.2), LLAMA).item(), abs=1e-12)


def test_a_first_batch_without_targets_is_not_compared():
    model = attached("llama", ScaleGradLoss(0.2))
    assert model(**{**LLAMA, "labels": torch.full_like(LLAMA["labels"], -100)}).loss.item() == 0


# ---- router losses where only outputs are at hand --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MixtralForCausalLM", "DbrxForCausalLM", "JetMoeForCausalLM"])
def test_hf_loss_keeps_the_router_loss(name):
    model, batch = architectures.build(name), architectures.inputs(name)
    expected = hf.attach(model, ScaleGradLoss(0.2))(**batch).loss.item()
    hf.detach(model)
    labels = batch.pop("labels")
    outputs = model(**batch, use_cache=False)
    assert hf.loss(ScaleGradLoss(0.2), model=model)(outputs, labels).item() == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match=r"does not know how much.*hf\.attach"):
        hf.loss(ScaleGradLoss(0.2))(outputs, labels)
