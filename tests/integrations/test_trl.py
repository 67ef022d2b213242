"""TRL's trainer with an objective: its packing and masks, and what it logs; plain TRL refuses an attached model."""

import json

import datasets
import peft
import pytest
import torch
import transformers
import trl

from scalegrad import ScaleGradLoss
from scalegrad.gamma import Linear
from scalegrad.integrations import hf
from scalegrad.integrations.trl import ScaleGradSFTTrainer
from tests.integrations import architectures, tiny
from tests.integrations.training import DESCENT, attached, weights

TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] }} "
    "{% endgeneration %}{% else %}{{ message['content'] }} {% endif %}{% endfor %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    fast = tiny.tokenizer()
    fast.chat_template = TEMPLATE
    return fast


def words(ids):
    return " ".join(tiny.WORDS[i - 3] for i in ids.tolist())


def texts(count=4):
    return [words(row["input_ids"]) for row in tiny.examples("llama", count)]


def sft(model, tokenizer, rows, folder, *, trainer=ScaleGradSFTTrainer, evaluate=False, steps=1, **settings):
    loss = settings.pop("loss", ScaleGradLoss(0.2) if trainer is ScaleGradSFTTrainer else None)
    arguments = trl.SFTConfig(
        str(folder),
        per_device_train_batch_size=settings.pop("batch", len(rows)),
        per_device_eval_batch_size=len(rows),
        max_steps=steps,
        learning_rate=0.5,
        bf16=False,
        gradient_checkpointing=False,
        **DESCENT,
        **settings,
    )
    data = datasets.Dataset.from_list(rows)
    made = trainer(
        model,
        arguments,
        train_dataset=data,
        eval_dataset=data if evaluate else None,
        processing_class=tokenizer,
        **({} if loss is None else {"loss": loss}),
    )
    made.train()
    return made


def by_hand(name, rows, prompt=False):
    """One step of gradient descent on `rows` with the attached model, without TRL."""
    model = attached(name, ScaleGradLoss(0.2), prompt=prompt)
    loss = model(**tiny.padded(rows)).loss
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
    return weights(model), loss.item()


def with_end(text, masked=0):
    """Ids of a text as TRL makes them, with the end of sequence; the first `masked` labels are no targets."""
    ids = torch.tensor([3 + tiny.WORDS.index(word) for word in text.split()] + [2])
    labels = ids.clone()
    labels[:masked] = -100
    return {"input_ids": ids, "labels": labels}


LAYOUTS = {
    "padded": {},
    "padding-free": {"padding_free": True, "max_length": None},
    "packed": {"packing": True, "max_length": 40, "packing_strategy": "bfd"},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", tiny.CAUSAL)
@pytest.mark.filterwarnings("ignore::UserWarning")  # TRL, of attention kernels that a CPU does not have
def test_packed_equals_padded_equals_by_hand(name, layout, tokenizer, tmp_path):
    """Also the first token of each packed document counts as seen, which TRL's collator masks."""
    model = tiny.model(name)
    settings = {**LAYOUTS[layout], **({"batch": 1} if layout == "packed" else {})}
    trainer = sft(model, tokenizer, [{"text": text} for text in texts()], tmp_path, **settings)
    assert len(trainer.train_dataset) == (1 if layout == "packed" else 4)
    expected, loss = by_hand(name, [with_end(text) for text in texts()])
    tiny.same(weights(model), expected)
    assert trainer.state.log_history[0]["loss"] == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("layout", ["padded", "padding-free"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_completion_only(layout, prompt, tokenizer, tmp_path):
    split = [text.split() for text in texts()]
    rows = [{"prompt": " ".join(words[:2]), "completion": " " + " ".join(words[2:])} for words in split]
    model = tiny.model("llama")
    arguments = {**LAYOUTS[layout], "loss": ScaleGradLoss(0.2)}
    if prompt:
        arguments["trainer"] = lambda *a, **k: ScaleGradSFTTrainer(*a, prompt=True, **k)
    sft(model, tokenizer, rows, tmp_path, **arguments)
    expected, _ = by_hand("llama", [with_end(text, masked=2) for text in texts()], prompt=prompt)
    tiny.same(weights(model), expected)


def test_assistant_only(tokenizer, tmp_path):
    """Only what the assistant says is a target, here without an end of sequence."""
    rows, by_ids = [], []
    for text in texts():
        first, second, *rest = text.split()
        turns = [("user", f"{first} {second}"), ("assistant", " ".join(rest))]
        rows.append({"messages": [{"role": role, "content": said} for role, said in turns]})
        ids = with_end(text, masked=2)
        by_ids.append({key: value[:-1] for key, value in ids.items()})
    model = tiny.model("llama")
    sft(model, tokenizer, rows, tmp_path, assistant_only_loss=True)
    tiny.same(weights(model), by_hand("llama", by_ids)[0])


def test_evaluation_is_plain_and_the_logs_have_the_parts(tokenizer, tmp_path):
    model = tiny.model("gpt2")
    loss = ScaleGradLoss(Linear(1.0, 0.2, steps=2))
    rows = [{"text": text} for text in texts()]
    trainer = sft(model, tokenizer, rows, tmp_path, evaluate=True, loss=loss, steps=3)
    assert loss.step == 2  # told by the trainer
    first, _, third, *_ = trainer.state.log_history
    assert first["loss"] == pytest.approx(first["nll"], abs=1e-6)  # γ = 1 there
    assert third["loss"] != pytest.approx(third["nll"], abs=1e-3)
    assert 0 < third["seen_mass"] < 1
    plain = hf.detach(model.eval())
    with torch.no_grad():
        nll = plain(**tiny.padded([with_end(text) for text in texts()])).loss.item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(nll, abs=1e-6)


def test_the_saved_model_and_its_card(tokenizer, tmp_path):
    trainer = sft(tiny.model("llama"), tokenizer, [{"text": text} for text in texts()], tmp_path)
    trainer.save_model(str(tmp_path / "model"))
    assert json.loads((tmp_path / "model" / "config.json").read_text())["scalegrad"]["gamma"] == 0.2
    assert "Trained with ScaleGrad" in (tmp_path / "model" / "README.md").read_text()
    trainer.create_model_card(model_name="a model")
    card = (tmp_path / "README.md").read_text()
    assert "Trained with ScaleGrad" in card
    assert "TRL" in card
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float64)
    tiny.same(weights(loaded), weights(trainer.model))


@pytest.mark.parametrize("when", ["before", "after"])
def test_plain_trl_refuses_an_attached_model(when, tokenizer, tmp_path):
    """Attached before TRL puts its own output layer in, or after: it trains around the objective, and must not."""

    class Late(trl.SFTTrainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            if when == "after":
                hf.attach(self.model, ScaleGradLoss(0.2))

    model = tiny.model("llama")
    if when == "before":
        hf.attach(model, ScaleGradLoss(0.2))
    rows = [{"text": text} for text in texts()]
    with pytest.raises(ValueError, match=r"ScaleGradSFTTrainer for TRL|must be given labels while it trains"):
        sft(model, tokenizer, rows, tmp_path, trainer=Late)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loss_type": "dft"}, "args.loss_type must be left alone"),
        ({"label_smoothing_factor": 0.1}, "give label_smoothing to the loss"),
    ],
)
def test_other_losses_are_refused(settings, sentence, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        sft(tiny.model("llama"), tokenizer, [{"text": text} for text in texts()], tmp_path, **settings)


def test_with_an_adapter(tokenizer, tmp_path):
    """A new adapter changes nothing yet: the first loss is the model's own objective; only the adapter learns."""
    model = tiny.model("llama")
    before = weights(model)
    adapter = peft.LoraConfig(r=2, target_modules=["q_proj"])

    def with_adapter(*args, **kwargs):
        return ScaleGradSFTTrainer(*args, peft_config=adapter, **kwargs)

    rows = [{"text": text} for text in texts()]
    trainer = sft(model, tokenizer, rows, tmp_path, trainer=with_adapter, loss=ScaleGradLoss(0.2), steps=2)
    first, second = (entry["loss"] for entry in trainer.state.log_history[:2])
    assert first == pytest.approx(by_hand("llama", [with_end(text) for text in texts()])[1], abs=1e-6)
    assert second < first
    assert hf.detach(trainer.model).get_base_model() is model
    after = {name.replace(".base_layer", ""): value for name, value in weights(model).items() if "lora" not in name}
    tiny.same(after, before, 0.0)
    trainer.save_model(str(tmp_path / "adapter"))
    assert (tmp_path / "adapter" / "adapter_model.safetensors").exists()


def test_attached_before_is_attached_anew(tokenizer, tmp_path):
    model = attached("llama", ScaleGradLoss(0.9))
    sft(model, tokenizer, [{"text": text} for text in texts()], tmp_path)
    tiny.same(weights(model), by_hand("llama", [with_end(text) for text in texts()])[0])


def test_the_weight_of_the_router_loss_is_trls(tokenizer, tmp_path):
    """A model keeps the coefficient that it was made with; TRL's arguments may have another."""
    losses = []
    for weight in (0.0, 1.0, 2.0):
        model = architectures.build("MixtralForCausalLM").train()
        trainer = sft(model, tokenizer, [{"text": text} for text in texts()], tmp_path, router_aux_loss_coef=weight)
        losses.append(trainer.state.log_history[0]["loss"])
    assert losses[1] - losses[0] > 1
    assert losses[2] - losses[1] == pytest.approx(losses[1] - losses[0], abs=1e-5)
