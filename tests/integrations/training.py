"""A few steps of Hugging Face's `Trainer` on a tiny model, here or in each process of a `torchrun`."""

import torch
import transformers

from scalegrad.integrations import hf
from tests.integrations import tiny

DESCENT = {  # plain gradient descent, every step logged, nothing left behind
    "lr_scheduler_type": "constant",
    "optim": "sgd",
    "max_grad_norm": 0.0,
    "logging_steps": 1,
    "report_to": [],
    "save_strategy": "no",
    "use_cpu": True,
    "disable_tqdm": True,
}


def untrained(model, data, folder, *, batch=8, accumulation=1, steps=2, rate=0.5, trainer=None, **settings):
    """A trainer for a few steps."""
    arguments = transformers.TrainingArguments(
        str(folder),
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        max_steps=steps,
        learning_rate=rate,
        remove_unused_columns=False,
        **{**DESCENT, **settings},
    )
    return transformers.Trainer(model, arguments, train_dataset=data, data_collator=tiny.padded, **(trainer or {}))


def trained(model, data, folder, **options):
    """A few steps: (the trainer, the logged losses)."""
    made = untrained(model, data, folder, **options)
    made.train()
    losses = [entry["loss"] for entry in made.state.log_history if "loss" in entry]
    return made, losses


def weights(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def attached(name, loss, **options):
    return hf.attach(tiny.model(name), loss, **options)


def descend(model, batch, rate=0.5):
    """One step by hand: ({name: gradient}, loss)."""
    loss = model(**batch).loss
    loss.backward()
    return tiny.gradients(model), loss.detach()


def logits_loss(model, loss, batch):
    """The objective without `attach`, written out: logits first, shifted by hand for a causal model."""
    given = {name: value for name, value in batch.items() if name != "labels"}
    labels = batch["labels"]
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
        return loss(model(**given).logits, labels)
    logits = model(**given).logits
    return loss(logits[:, :-1], labels[:, 1:], context=labels[:, :-1])


def packed(rows):
    """The rows as one, positions starting again at each; the first label of each masked, as collators do."""
    labels = [row["labels"].clone() for row in rows]
    for label in labels:
        label[0] = -100
    positions = [torch.arange(len(row["input_ids"])) for row in rows]
    return {
        "input_ids": torch.cat([row["input_ids"] for row in rows])[None],
        "labels": torch.cat(labels)[None],
        "position_ids": torch.cat(positions)[None],
    }
