"""An objective inside a model: every kind of output layer, wrappers, copies, and whoever would go around it."""

import copy
import inspect
import io
import warnings

import peft
import pytest
import torch
import transformers
from torch._dynamo.testing import CompileCounterWithBackend

from scalegrad import ScaleGradLoss, UnlikelihoodLoss
from scalegrad.gamma import Linear
from scalegrad.integrations import hf
from scalegrad.integrations.output_layer import Finish
from tests.integrations import tiny
from tests.integrations.training import attached, descend, logits_loss, trained, weights


def batch_for(name):
    return tiny.padded(tiny.examples(name))


def unfused(model, loss, batch):
    value = logits_loss(model, loss, batch)
    value.backward()
    return tiny.gradients(model), value.detach()


# ---- what comes after the output layer -------------------------------------------------------------------------------

FINISHES = {
    "gpt2": Finish(),
    "llama": Finish(),
    "opt": Finish(),
    "bart": Finish(bias="final_logits_bias"),
    "t5": Finish(),
    "bert2bert": Finish(),  # its bias is the layer's own
    "gemma2": Finish(softcap=0.1),
    "cohere": Finish(logit_scale=0.0625),
    "granite": Finish(logit_scale=0.125),
    "mixtral": Finish(),
}


@pytest.mark.parametrize("name", tiny.MODELS)
@pytest.mark.filterwarnings("ignore:.*encoder-decoder.*:FutureWarning")  # EncoderDecoderModel, of its own loss
def test_every_output_layer(name):
    """Fused, it is what the model's own logits give, and at γ = 1 the model's own loss; nothing else was copied."""
    dtype = torch.float32 if name == "mixtral" else torch.float64  # its experts have no float64
    batch = batch_for(name)
    model = hf.attach(tiny.model(name, dtype=dtype), ScaleGradLoss(0.2))
    outputs = model(**batch)
    assert outputs.logits is None
    assert model._scalegrad.finish == FINISHES[name]
    outputs.loss.backward()
    found = tiny.gradients(model)
    hf.detach(model)
    if name != "mixtral":  # which adds the balance of its experts
        expected, loss = unfused(model, ScaleGradLoss(0.2), batch)
        assert outputs.loss.item() == pytest.approx(loss.item(), abs=1e-12)
        tiny.same(found, expected)
    own = model(**batch).loss
    mine = hf.attach(model, ScaleGradLoss(1.0))(**batch).loss
    assert mine.item() == pytest.approx(own.item(), abs=1e-6)


def test_t5_with_untied_outputs_does_not_scale():
    model = hf.attach(tiny.model("t5", tie_word_embeddings=False, scale_decoder_outputs=False), ScaleGradLoss(0.2))
    found, loss = descend(model, batch_for("t5"))
    expected, by_logits = unfused(hf.detach(model), ScaleGradLoss(0.2), batch_for("t5"))
    assert loss.item() == pytest.approx(by_logits.item(), abs=1e-12)
    tiny.same(found, expected)


def test_an_unknown_finish_is_found_out_and_trains_from_logits():
    """A model that does something of its own to its logits: the result is still its own, at the price of memory."""

    class Odd(transformers.LlamaForCausalLM):
        def forward(self, *args, labels=None, **kwargs):
            outputs = super().forward(*args, **kwargs)
            outputs.logits = outputs.logits**3
            if labels is not None:
                outputs.loss = self.loss_function(outputs.logits, labels, self.config.vocab_size)
            return outputs

    torch.manual_seed(0)
    model = hf.attach(Odd(tiny.model("llama").config).double(), ScaleGradLoss(0.2))
    torch.nn.init.normal_(model.lm_head.weight)
    with pytest.warns(UserWarning, match="trains from whole logits.*output layer gives in its own way"):
        found, loss = descend(model, batch_for("llama"))
    expected, by_logits = unfused(hf.detach(model), ScaleGradLoss(0.2), batch_for("llama"))
    assert loss.item() == pytest.approx(by_logits.item(), abs=1e-12)
    tiny.same(found, expected)


def test_an_output_layer_called_step_by_step_trains_from_logits():
    class Stepwise(transformers.LlamaForCausalLM):
        def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
            hidden = self.model(input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state
            logits = torch.stack([self.lm_head(step) for step in hidden.unbind(1)], 1)
            return transformers.modeling_outputs.CausalLMOutput(logits=logits)

    torch.manual_seed(0)
    model = hf.attach(Stepwise(tiny.model("llama").config).double(), ScaleGradLoss(0.2))
    with pytest.warns(UserWarning, match=r"it gives its output layer \[batch, steps, width\] 0 times"):
        found, loss = descend(model, batch_for("llama"))
    assert "forward" not in model.lm_head.__dict__
    expected, by_logits = unfused(hf.detach(model), ScaleGradLoss(0.2), batch_for("llama"))
    assert loss.item() == pytest.approx(by_logits.item(), abs=1e-12)
    tiny.same(found, expected)


def test_an_interrupted_first_step_is_made_up_for():
    model = attached("llama", ScaleGradLoss(0.2))
    with pytest.raises(IndexError):
        model(input_ids=torch.tensor([[tiny.VOCAB]]), labels=torch.tensor([[3]]))
    descend(model, batch_for("llama"))
    assert model._scalegrad.fused is True


def test_the_first_step_does_not_shift_the_random_stream():
    """A run that resumes looks again, and must drop out the same units."""
    model = hf.attach(tiny.model("gpt2", resid_pdrop=0.5), ScaleGradLoss(0.2))
    drawn = []
    for _ in range(2):  # with the look, and without
        torch.manual_seed(7)
        drawn.append((model(**batch_for("gpt2")).loss.item(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]


def test_reentrant_checkpoints():
    model, plain = attached("llama", ScaleGradLoss(0.2)), attached("llama", ScaleGradLoss(0.2))
    model.gradient_checkpointing_enable({"use_reentrant": True})
    model.enable_input_require_grads()
    found, loss = descend(model, batch_for("llama"))
    expected, by_hand = descend(plain, batch_for("llama"))
    assert loss.item() == by_hand.item()
    tiny.same(found, expected)


def test_a_resized_vocabulary_is_found_again():
    model = attached("llama", ScaleGradLoss(0.2))
    descend(model, batch_for("llama"))
    model.resize_token_embeddings(tiny.VOCAB + 4, mean_resizing=False)
    model.double()
    found, loss = descend(model, batch_for("llama"))
    assert model._scalegrad.fused is True
    expected, by_logits = unfused(hf.detach(model), ScaleGradLoss(0.2), batch_for("llama"))
    assert loss.item() == pytest.approx(by_logits.item(), abs=1e-12)
    tiny.same(found, expected)


# ---- adapters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("head", [False, True])
def test_lora(when, head):
    """On the output layer too, whose `.weight` leaves the adapter out: then from logits, and said so."""
    torch.manual_seed(3)
    model = tiny.model("llama")
    if when == "before":
        hf.attach(model, ScaleGradLoss(0.2))
    targets = ["q_proj", *(["lm_head"] if head else [])]
    model = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=targets, init_lora_weights=False)).double()
    if when == "after":
        assert hf.attach(model, ScaleGradLoss(0.2)) is model
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found, loss = descend(model, batch_for("llama"))
    assert any("trains from whole logits" in str(entry.message) for entry in said) is head
    assert set(found) == {name for name, p in model.named_parameters() if p.requires_grad}
    inner = hf.detach(model).get_base_model()
    expected, by_logits = unfused(inner, ScaleGradLoss(0.2), batch_for("llama"))
    assert loss.item() == pytest.approx(by_logits.item(), abs=1e-12)
    assert max(float((found[f"base_model.model.{key}"] - value).abs().max()) for key, value in expected.items()) < 1e-12


# ---- the same call as before -----------------------------------------------------------------------------------------


def test_the_signature_is_the_models_own():
    model = tiny.model("gpt2")
    before = inspect.signature(model.forward)
    assert inspect.signature(hf.attach(model, ScaleGradLoss(0.2)).forward) == before


def test_positional_arguments_and_tuples():
    model = attached("llama", ScaleGradLoss(0.2))
    batch = batch_for("llama")
    by_name = model(**batch).loss
    loss, *rest = model(batch["input_ids"], batch["attention_mask"], labels=batch["labels"], return_dict=False)
    assert loss.item() == by_name.item()
    assert rest == []  # no logits
    with torch.no_grad():
        nll, logits = model(**batch, return_dict=False)
    assert logits.shape == (8, 10, tiny.VOCAB)
    assert nll.item() == pytest.approx(hf.last_parts(model).nll.item(), abs=1e-12)


def test_soft_prompts():
    """PEFT's prompt tuning puts vectors before the text and labels of −100 for them: no ids, and nothing seen."""
    torch.manual_seed(3)
    settings = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = peft.get_peft_model(tiny.model("llama"), settings).double()
    own = model(**batch_for("llama")).loss
    mine = hf.attach(model, ScaleGradLoss(1.0))(**batch_for("llama")).loss
    assert mine.item() == pytest.approx(own.item(), abs=1e-6)
    hf.attach(model, ScaleGradLoss(0.2), prompt=True)
    with pytest.raises(ValueError, match="prompt=True needs input_ids"):
        model(**batch_for("llama"))


def test_without_labels_it_is_the_model():
    model, plain = attached("gpt2", ScaleGradLoss(0.2)).eval(), tiny.model("gpt2").eval()
    ids = batch_for("gpt2")["input_ids"]
    assert torch.equal(model(ids).logits, plain(ids).logits)
    given = {"max_new_tokens": 5, "do_sample": False}
    assert torch.equal(model.generate(ids[:, :4], **given), plain.generate(ids[:, :4], **given))


def test_gradients_decide_not_the_mode():
    """Training without dropout, as the authors' code does, is training all the same."""
    model = attached("gpt2", ScaleGradLoss(0.2))
    batch = batch_for("gpt2")
    objective = model(**batch).loss.item()
    assert model.eval()(**batch).loss.item() == objective
    nll = hf.last_parts(model).nll.item()
    with torch.no_grad():
        assert model.train()(**batch).loss.item() == pytest.approx(nll, abs=1e-12) != objective


def test_num_items_divides_the_sum():
    model = attached("t5", ScaleGradLoss(0.2))
    batch = batch_for("t5")
    count = int((batch["labels"] >= 0).sum())
    mean = model(**batch).loss.item()
    assert model(**batch, num_items_in_batch=torch.tensor(10 * count)).loss.item() == pytest.approx(
        mean / 10, rel=1e-12
    )
    with torch.no_grad():
        plain = model(**batch).loss.item()
        assert model(**batch, num_items_in_batch=2 * count).loss.item() == pytest.approx(plain / 2, rel=1e-12)


def test_a_batch_without_targets_is_a_zero_that_trains():
    model = attached("llama", ScaleGradLoss(0.2))
    batch = {**batch_for("llama"), "labels": torch.full((8, 10), -100)}
    gradients, loss = descend(model, batch)
    assert loss.item() == 0
    assert all(float(g.abs().max()) == 0 for g in gradients.values())
    assert hf.last_parts(model).nll.item() == 0


# ---- mixed precision and compilation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["gpt2", "bart", "gemma2"])
def test_autocast(name, dtype):
    """Half-precision arithmetic, a float32 loss near the exact one, float32 gradients."""
    model = hf.attach(tiny.model(name, dtype=torch.float32), ScaleGradLoss(0.2))
    exact = hf.attach(tiny.model(name), ScaleGradLoss(0.2))
    with torch.autocast("cpu", dtype=dtype):
        loss = model(**batch_for(name)).loss
    assert loss.dtype == torch.float32
    expected, value = descend(exact, batch_for(name))
    assert loss.item() == pytest.approx(value.item(), abs=2e-2)
    loss.backward()
    found = tiny.gradients(model)
    assert {g.dtype for g in found.values()} == {torch.float32}
    for key in ("lm_head.weight", "transformer.wte.weight", "model.shared.weight", "model.embed_tokens.weight"):
        if key in found:
            assert float((found[key] - expected[key]).norm()) < 0.05 * float(expected[key].norm())


def test_mixed_precision_by_trainer_and_detaching_under_it(tmp_path):
    """Accelerate wraps the forward around the objective; detached below it, the model is its own again."""
    model = hf.attach(tiny.model("llama", dtype=torch.float32), ScaleGradLoss(0.2))
    _, losses = trained(model, tiny.examples("llama"), tmp_path, bf16=True, steps=4)
    assert losses[-1] < losses[0]
    hf.detach(model)
    plain = tiny.model("llama", dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    batch = batch_for("llama")
    assert model(**batch).loss.item() == pytest.approx(plain(**batch).loss.item(), rel=2e-2)  # still in bf16
    assert model(**batch).logits.shape == (*batch["labels"].shape, model.config.vocab_size)


@pytest.mark.parametrize(("first", "backend"), [("eager", "aot_eager"), ("compiled", "eager")])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler calls what torch deprecates
def test_compiled(first, backend):
    """One graph for all steps, whatever γ a schedule gives; whole, once the model was called without compiling."""
    torch._dynamo.reset()
    loss = ScaleGradLoss(Linear(1.0, 0.2, steps=20))
    loss.step = 0
    graphs = CompileCounterWithBackend(backend)
    model, plain = (hf.attach(tiny.model("gpt2", n_layer=1), loss) for _ in range(2))
    batch = batch_for("gpt2")
    if first == "eager":
        model(**batch)
    compiled = torch.compile(model, backend=graphs, fullgraph=first == "eager")
    made = []
    for step in (0, 7, 14, 20):
        loss.step = step
        value = compiled(**batch).loss
        value.backward()
        expected, by_hand = descend(plain, batch)
        assert value.item() == pytest.approx(by_hand.item(), abs=1e-12)
        tiny.same(tiny.gradients(model), expected)
        made.append(graphs.frame_count)
    assert len(set(made)) == 1


# ---- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_a_copy_trains_itself(name, how):
    """Its own weights, its own loss, not those of the model it was copied from; nothing new in its state."""
    model = attached(name, ScaleGradLoss(0.2))
    batch = batch_for(name)
    model(**batch)
    assert weights(model).keys() == weights(tiny.model(name)).keys()
    if how == "deepcopy":
        twin = copy.deepcopy(model)
    else:
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        twin = torch.load(file, weights_only=False)
    before = model(**batch).loss.item()
    assert twin(**batch).loss.item() == before
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(1.5)
    assert twin(**batch).loss.item() != before
    assert model(**batch).loss.item() == before
    hf.detach(twin)
    assert hf.attached(model).gamma == 0.2
    assert twin(**batch).logits.shape == (*batch["labels"].shape, model.config.vocab_size)


def test_detach_leaves_nothing():
    model = tiny.model("gpt2")
    model.loss_type = "something"
    before = {key: value for key, value in model.__dict__.items() if key != "config"}
    config = model.config.to_dict()
    hf.attach(model, ScaleGradLoss(0.2))
    hf.attach(model, UnlikelihoodLoss(1.0))  # in place of the first
    assert isinstance(hf.attached(model), UnlikelihoodLoss)
    hf.detach(model)
    assert {key: value for key, value in model.__dict__.items() if key != "config"} == before
    assert model.config.to_dict() == config
    assert not model.transformer._forward_pre_hooks
    assert "forward" not in model.lm_head.__dict__
    assert hf.detach(model) is model  # twice is once
    assert hf.attached(model) is None
    assert hf.last_parts(model) is None


# ---- nobody goes around it -------------------------------------------------------------------------------------------


def test_training_without_labels_raises():
    with pytest.raises(ValueError, match="must be given labels while it trains"):
        attached("gpt2", ScaleGradLoss(0.2))(input_ids=batch_for("gpt2")["input_ids"])


@pytest.mark.parametrize("settings", [{"label_smoothing_factor": 0.1}, {}])
def test_a_trainer_that_takes_the_labels_away_raises(settings, tmp_path):
    trainer = {} if settings else {"compute_loss_func": hf.loss(ScaleGradLoss(0.2))}
    with pytest.raises(ValueError, match="must be given labels while it trains"):
        trained(attached("gpt2", ScaleGradLoss(0.2)), tiny.examples("gpt2"), tmp_path, trainer=trainer, **settings)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bart", "opt"])
def test_calling_the_trunk_to_train_raises(name):
    model = attached(name, ScaleGradLoss(0.2))
    ids = batch_for(name)["input_ids"]
    with pytest.raises(ValueError, match="something trains it around its forward"):
        model.base_model(ids)
    with torch.no_grad():
        model.base_model(ids)
    model.eval().base_model(ids)
    hf.detach(model.train()).base_model(ids)


def test_calling_the_decoder_to_train_raises():
    """T5 has no trunk of its own."""
    model = attached("t5", ScaleGradLoss(0.2))
    with pytest.raises(ValueError, match="something trains it around its forward"):
        model.decoder(batch_for("t5")["input_ids"])


# ---- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reduction": "sum"}, "loss must have reduction='mean' here"),
        ({"ignore_index": 0}, "loss must have ignore_index=-100"),
        ({"softcap": 30.0}, "loss must leave softcap to the model"),
        ({"logit_scale": 2.0}, "loss must leave logit_scale to the model"),
    ],
)
def test_a_loss_that_does_not_fit_is_refused(options, sentence):
    for take in (lambda loss: hf.attach(tiny.model("gpt2"), loss), hf.loss):
        with pytest.raises(ValueError, match=sentence):
            take(ScaleGradLoss(0.2, **options))


def test_what_is_no_loss_and_what_is_no_model():
    with pytest.raises(ValueError, match="loss must be a ScaleGradLoss or an UnlikelihoodLoss, not Linear"):
        hf.attach(tiny.model("gpt2"), torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="model must be a Hugging Face model with an output layer, not Linear"):
        hf.attach(torch.nn.Linear(1, 1), ScaleGradLoss(0.2))
    with pytest.raises(ValueError, match="model must be a Hugging Face model with an output layer, not GPT2Model"):
        hf.attach(tiny.model("gpt2").transformer, ScaleGradLoss(0.2))
    with pytest.raises(ValueError, match="labels must be given to an encoder–decoder"):
        attached("t5", ScaleGradLoss(0.2))(shift_labels=torch.ones(1, 2, dtype=torch.long))
