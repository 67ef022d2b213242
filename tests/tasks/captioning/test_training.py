"""Training through the shared `fit`: the published schedule, a model that learns its paragraphs by heart, resume."""

from __future__ import annotations

import pytest
import torch

from scalegrad.objectives import Objective
from scalegrad.runs import Run
from scalegrad.tasks.captioning.dataset import Paragraphs, by_length, collate
from scalegrad.tasks.captioning.scoring import describe
from scalegrad.tasks.captioning.training import PAPER, ClampedAdam, Recipe, optimizers, train_captioner
from scalegrad.tasks.captioning.vocabulary import build_tokenizer

TINY = Recipe(
    hidden_size=48, attention_size=24, dropout=0.0, more_than=0, epochs=250, batch=4, learning_rate=0.006,
    decay=0.5, decay_epochs=150, sampling_step=0.0, evaluations=2,
)  # fmt: skip


def test_the_published_recipe():
    assert (PAPER.hidden_size, PAPER.dropout, PAPER.batch, PAPER.learning_rate) == (512, 0.5, 10, 5e-4)
    assert [PAPER.rate(epoch) for epoch in (0, 2.99, 3, 6)] == pytest.approx([1, 1, 0.8, 0.64])
    assert [PAPER.sampling(epoch) for epoch in (0, 4.99, 5, 12, 25, 30)] == pytest.approx([0, 0, 0.05, 0.1, 0.25, 0.25])
    assert (PAPER.clamp, PAPER.more_than) == (0.1, 4)


def test_gradients_are_clamped_and_rates_follow_the_schedule():
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = ClampedAdam([weight], lr=1.0, clamp=0.1)
    weight.grad = torch.tensor([5.0, -0.2, 0.05])
    optimizer.step()
    assert weight.grad.tolist() == pytest.approx([0.1, -0.1, 0.05])
    optimizer, schedule = optimizers(Recipe(decay=0.5, decay_epochs=1), steps_in_epoch=2)(torch.nn.Linear(1, 1))
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"] / 5e-4)
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([1, 1, 0.5, 0.5, 0.25])


def test_batches_of_one_length(few_scenes):
    data = Paragraphs(few_scenes, build_tokenizer([item.paragraph for item in few_scenes], 0))
    batches = list(by_length(4)(data, 3))
    assert sorted(place for batch in batches for place in batch) == list(range(12))
    ordered = sorted(batches, key=lambda batch: len(data.labels[batch[0]]))
    longest = [max(len(data.labels[place]) for place in batch) for batch in ordered]
    shortest = [min(len(data.labels[place]) for place in batch) for batch in ordered]
    assert all(before <= after for before, after in zip(longest, shortest[1:], strict=False))
    assert list(by_length(4)(data, 3)) == batches != list(by_length(4)(data, 4))
    batch = collate([data[place] for place in batches[0]])
    assert batch["labels"].shape == (4, max(len(data.labels[place]) for place in batches[0]))


@pytest.mark.parametrize("objective", [Objective("mle"), Objective("sg", 0.5)], ids=str)
def test_overfit(few_scenes, tmp_path, objective):
    """Four paragraphs by heart, each from its own picture: told by greedy search word for word."""
    examples = few_scenes[:4]
    tokenizer = build_tokenizer([item.paragraph for item in examples], 0)
    data = Paragraphs(examples, tokenizer)
    run = Run.create(tmp_path / "run", {"objective": str(objective)})
    fitted = train_captioner(objective, data, data, tokenizer, run, TINY)
    assert fitted.validation_nll < 0.1
    assert describe(fitted.model.eval(), tokenizer, [item.regions for item in examples]) == [
        item.paragraph for item in examples
    ]


def test_scheduled_sampling_rises_and_a_run_resumes_to_the_same_weights(few_scenes, tmp_path):
    """With dropout and sampling on: a run stopped at a checkpoint ends as one that never stopped."""
    from dataclasses import replace

    import transformers as hf

    recipe = replace(
        TINY, epochs=4, dropout=0.3, sampling_step=0.2, sampling_epochs=1, sampling_most=0.5, evaluations=4
    )
    tokenizer = build_tokenizer([item.paragraph for item in few_scenes], 0)
    data = Paragraphs(few_scenes, tokenizer)
    probabilities = []

    class Stop(hf.TrainerCallback):
        def __init__(self, at):
            self.at = at

        def on_step_begin(self, args, state, control, model=None, **_):
            probabilities.append(model.scheduled_sampling)
            if state.global_step == self.at:
                raise KeyboardInterrupt

    def train(name, at):
        run = Run.create(tmp_path / name, {"name": "one"})
        return train_captioner(Objective("sg", 0.5), data, data, tokenizer, run, recipe, callbacks=[Stop(at)])

    whole = train("whole", None)
    assert probabilities == pytest.approx([0.0] * 3 + [0.2] * 3 + [0.4] * 3 + [0.5] * 3)
    with pytest.raises(KeyboardInterrupt):
        train("stopped", 7)
    resumed = train("stopped", None)
    for (name, first), second in zip(whole.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(first, second), name
