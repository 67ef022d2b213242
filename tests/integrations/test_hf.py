"""`hf.loss` in a Trainer, the step of a schedule, and what is saved and loaded."""

import json

import peft
import pytest
import torch
import transformers

from scalegrad import ScaleGradLoss, UnlikelihoodLoss, sets
from scalegrad.gamma import Linear
from scalegrad.integrations import hf
from scalegrad.integrations.hf import write_card
from tests.integrations import tiny
from tests.integrations.training import attached, descend, trained, untrained, weights


def evaluate(model, data, folder, **trainer):
    arguments = transformers.TrainingArguments(
        str(folder), use_cpu=True, report_to=[], disable_tqdm=True, per_device_eval_batch_size=8
    )
    made = transformers.Trainer(model, arguments, eval_dataset=data, data_collator=tiny.padded, **trainer)
    return made.evaluate()["eval_loss"]


@pytest.mark.parametrize("way", ["loss", "attach"])
def test_eval_loss_is_the_plain_nll(way, tmp_path):
    """Over the targets: Trainer alone would count GPT-2's first labels too."""
    model, data = tiny.model("gpt2"), tiny.examples("gpt2")
    batch = tiny.padded(data)
    with torch.no_grad():
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    flat = logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()
    expected = torch.nn.functional.cross_entropy(*flat).item()
    loss = UnlikelihoodLoss(1.0)
    trainer = {"compute_loss_func": hf.loss(loss)} if way == "loss" else {}
    model = hf.attach(model, loss) if way == "attach" else model
    assert evaluate(model, data, tmp_path, **trainer) == pytest.approx(expected, abs=1e-6)


def test_loss_reads_tuples_and_refuses_what_it_cannot_know():
    loss = hf.loss(ScaleGradLoss(0.5))
    labels = torch.tensor([[0, 1, 0]])
    logits = torch.zeros(1, 3, 4)
    assert loss((logits,), labels).item() == pytest.approx((torch.tensor(15.0).log() / 2).item(), rel=1e-6)
    with pytest.raises(ValueError, match="labels must be in the data set"):
        loss((logits,), None)
    bart = tiny.model("bart")
    with pytest.raises(ValueError, match=r"hf\.loss is for causal models.*use hf\.attach"):
        loss(bart(**tiny.padded(tiny.examples("bart"))), labels)


@pytest.mark.parametrize("way", ["loss", "attach"])
def test_a_schedule_is_told_its_step(way, tmp_path):
    """Optimiser steps, not batches: two batches a step, and γ at the third step is that of step 2."""
    loss = ScaleGradLoss(Linear(1.0, 0.2, steps=2))
    model = tiny.model("llama")
    if way == "attach":
        hf.attach(model, loss)
        trainer = {"callbacks": [hf.StepCallback()]}
    else:
        trainer = {"callbacks": [hf.StepCallback(loss)], "compute_loss_func": hf.loss(loss)}
    _, losses = trained(
        model, tiny.examples("llama"), tmp_path, batch=4, accumulation=2, steps=3, rate=0.0, trainer=trainer
    )
    assert loss.step == 2
    batch = tiny.padded(tiny.examples("llama"))
    for gamma, logged in zip((1.0, 0.6, 0.2), losses, strict=True):
        _, value = descend(attached("llama", ScaleGradLoss(gamma)), batch)
        assert logged == pytest.approx(value.item(), abs=1e-6)


@pytest.mark.parametrize("way", ["loss", "attach"])
def test_the_log_has_the_plain_nll_beside_the_loss(way, tmp_path):
    """A rate of 0 keeps the weights: every step's mean over its two batches is that of all eight examples."""
    loss, model = ScaleGradLoss(0.2), tiny.model("llama")
    plain = tiny.model("llama")
    batch = tiny.padded(tiny.examples("llama"))
    expected = plain(**batch).loss.item()
    computed = hf.loss(ScaleGradLoss(0.2, return_parts=True))
    if way == "attach":
        hf.attach(model, loss)
    options = {"callbacks": [hf.StepCallback()]}
    if way == "loss":
        options = {"callbacks": [hf.StepCallback(computed)], "compute_loss_func": computed}
    trainer, _ = trained(
        model, tiny.examples("llama"), tmp_path, batch=4, accumulation=2, steps=2, rate=0.0, trainer=options
    )
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [entry["nll"] for entry in logged] == pytest.approx([expected] * 2, abs=1e-5)
    assert all(0 < entry["seen_mass"] < 1 and abs(entry["loss"] - entry["nll"]) > 0.01 for entry in logged)


@pytest.mark.parametrize("first", [True, False])
def test_trackers_that_trainer_sets_up_draw_the_nll(first, tmp_path, monkeypatch):
    """TensorBoard's own file, read back."""
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    model = attached("llama", ScaleGradLoss(0.2))
    trainer = untrained(model, tiny.examples("llama"), tmp_path, steps=2, report_to=["tensorboard"])
    if first:
        callback = hf.StepCallback.add_to(trainer)
        assert trainer.callback_handler.callbacks[0] is callback
    else:
        trainer.add_callback(hf.StepCallback())
    trainer.train()
    board = events.EventAccumulator(str(tmp_path / "board")).Reload()
    drawn = {tag: [event.value for event in board.Scalars(tag)] for tag in board.Tags()["scalars"]}
    logged = [entry["nll"] for entry in trainer.state.log_history if "nll" in entry]
    assert len(logged) == 2
    assert drawn.get("train/nll", []) == (pytest.approx(logged, abs=1e-5) if first else [])
    assert ("train/seen_mass" in drawn) == first


def test_a_schedule_that_is_not_told_raises(tmp_path):
    model = attached("llama", ScaleGradLoss(Linear(1.0, 0.2, steps=2)))
    with pytest.raises(ValueError, match="was never told its step"):
        trained(model, tiny.examples("llama"), tmp_path)


class Engine(torch.nn.Module):
    """Hands on what it lacks to the model inside, as DeepSpeed's engine does."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.config = {"zero_optimization": {"stage": 2}}

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def forward(self, **inputs):
        return self.module(**inputs)


def test_a_wrapper_that_hands_on_attributes_is_looked_through():
    loss = ScaleGradLoss(0.5)
    model = hf.attach(tiny.gpt2(), loss)
    engine = Engine(model)
    ids = torch.tensor([[5, 6, 5, 7]])
    engine(input_ids=ids, labels=ids)
    assert hf.attached(engine) is loss
    nll = hf.last_parts(engine).nll.item()
    hf.detach(engine)
    assert nll == pytest.approx(model(input_ids=ids, labels=ids).loss.item(), abs=1e-5)


def test_several_gpus_in_one_process_are_refused():
    arguments = type("Arguments", (), {"n_gpu": 2})
    with pytest.raises(ValueError, match="needs one process for each GPU"):
        hf.StepCallback().on_train_begin(arguments, None, None, model=attached("gpt2", ScaleGradLoss(0.2)))


# ---- save and load ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", tiny.FOUR)
def test_saved_and_loaded_leaves_a_record_and_nothing_else(name, tmp_path):
    loss = ScaleGradLoss(0.2, discourage=sets.Seen(exempt=[2]))
    model, plain = attached(name, loss), tiny.model(name)
    model(**tiny.padded(tiny.examples(name)))
    model.save_pretrained(tmp_path / "attached")
    plain.save_pretrained(tmp_path / "plain")
    saved, expected = (json.loads((tmp_path / kind / "config.json").read_text()) for kind in ("attached", "plain"))
    told = saved.pop("scalegrad")
    assert saved == expected
    assert told["objective"] == "sg"
    assert told["gamma"] == 0.2
    assert told["discourage"] == "Seen(exempt=(2,))"
    loaded = type(plain).from_pretrained(tmp_path / "attached", dtype=torch.float64)
    tiny.same(weights(loaded), weights(plain))
    assert hf.attached(loaded) is None
    batch = tiny.padded(tiny.examples(name))
    found = []
    for either in (loaded.train(), plain):  # a loaded model is the plain one, with its own loss and all its logits
        torch.manual_seed(0)
        with torch.no_grad():
            given = either(**batch)
        found.append({"loss": given.loss, "logits": given.logits})
    tiny.same(*found)
    assert "| gamma | 0.2 |" in (tmp_path / "attached" / "README.md").read_text()


def test_the_record_outlives_detach_only_if_the_model_was_trained(tmp_path):
    model = attached("gpt2", ScaleGradLoss(0.2))
    assert not hasattr(hf.detach(model).config, "scalegrad")
    descend(hf.attach(model, ScaleGradLoss(0.2)), tiny.padded(tiny.examples("gpt2")))
    assert hf.detach(model).config.scalegrad["gamma"] == 0.2
    model.save_pretrained(tmp_path)
    assert "save_pretrained" not in model.__dict__


def test_an_adapter_is_saved_with_a_card(tmp_path):
    model = peft.get_peft_model(tiny.model("llama"), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    hf.attach(model, ScaleGradLoss(0.3)).save_pretrained(str(tmp_path))
    card = (tmp_path / "README.md").read_text()
    assert "| gamma | 0.3 |" in card
    assert "peft" in card  # its own card is kept
    hf.detach(model.get_base_model())
    model.save_pretrained(str(tmp_path / "detached"))  # as it always was
    assert "ScaleGrad" not in (tmp_path / "detached" / "README.md").read_text()
    loaded = peft.PeftModel.from_pretrained(tiny.model("llama"), str(tmp_path))
    tiny.same(peft.get_peft_model_state_dict(loaded), peft.get_peft_model_state_dict(model), 1e-7)


def test_a_card_of_ones_own_is_kept(tmp_path):
    (tmp_path / "README.md").write_text("# My model\n\nWords.\n")
    for gamma in (0.5, 0.2):
        write_card(tmp_path, {"objective": "sg", "gamma": gamma, "discourage": "Seen()", "options": {"softcap": 3.0}})
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("# My model\n\nWords.\n\n<!-- scalegrad -->\n## Training objective\n")
    assert card.count("Training objective") == 1
    assert "| gamma | 0.2 |" in card
    assert "| softcap | 3.0 |" in card
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
