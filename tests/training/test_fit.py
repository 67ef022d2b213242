"""`fit`: what it computes, what it selects, and that stopping and going on changes nothing."""

import errno
import math
import os
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F
from transformers import GPT2LMHeadModel, TrainerCallback

from scalegrad.runs import Run
from scalegrad.training import Pad, Settings, checkpoints, fit
from scalegrad.training.trainer import NotFinite

SETTINGS = Settings(
    max_steps=9,
    batch=3,
    accumulation=2,
    learning_rate=3e-3,
    evaluate_every=3,
    save_every=2,
    log_every=4,
    tracker=(),
)
TIMES = ("seconds", "tokens_per_second")


class Stop(Exception):
    """As a kill would, in the middle of a step."""


class StopAt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_pre_optimizer_step(self, args, state, control, **_):
        if state.global_step == self.step:
            raise Stop


def weights(run: Run):
    return load_file(run.model_path / "model.safetensors")


def log(run: Run):
    return [{key: value for key, value in line.items() if key not in TIMES} for line in run.metrics()]


def test_one_step_is_the_optimizers_step_on_the_oracles_gradient(gpt2, new_run):
    """Two accumulated batches, one step of SGD: the weights move by the gradient of the mean over all their targets."""
    rows = [torch.tensor([5, 6, 5, 7, 6]), torch.tensor([9, 9, 8]), torch.tensor([4, 5, 4, 4])]
    data = [{"input_ids": row, "labels": row} for row in rows]
    model, twin = gpt2().eval(), gpt2().eval()
    for module in [*model.modules(), *twin.modules()]:
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    losses = []
    for row in rows:  # ScaleGrad by its definition: novel probabilities scaled, renormalised
        logits = twin(input_ids=row[None]).logits[0].double()
        for t in range(len(row) - 1):
            novel = torch.ones(logits.shape[-1], dtype=torch.bool)
            novel[row[: t + 1]] = False
            losses.append(F.cross_entropy(logits[t] + torch.log(torch.where(novel, 0.2, 1.0)), row[t + 1]))
    (sum(losses) / len(losses)).backward()
    expected = {name: value.detach() - 0.5 * value.grad for name, value in twin.named_parameters()}

    def plain_descent(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        return optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)

    settings = replace(SETTINGS, max_steps=1, batch=2, max_grad_norm=0.0)
    fitted = fit(model, "sg=0.2", data, None, new_run("a"), settings, optimizers=plain_descent)
    for name, value in fitted.model.named_parameters():
        torch.testing.assert_close(value, expected[name].float(), atol=2e-6, rtol=1e-5)
    (line,) = log(fitted.run)
    assert line["loss"] == pytest.approx(sum(losses).item() / len(losses), rel=1e-5)


def test_validation_is_the_plain_nll_of_every_target_once(gpt2, data, new_run):
    train, validation = data
    fitted = fit(gpt2(), "sg=0.2", train, validation, new_run("a"), SETTINGS)
    model = GPT2LMHeadModel.from_pretrained(fitted.run.model_path).eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for example in validation:
            ids = example["input_ids"]
            logp = model(input_ids=ids[None]).logits[0, :-1].double().log_softmax(-1)
            total -= float(logp.gather(1, ids[1:, None]).sum())
            count += len(ids) - 1
    assert fitted.validation_nll == pytest.approx(total / count, rel=1e-6)
    lines = [line for line in log(fitted.run) if "validation_nll" in line]
    assert [line["step"] for line in lines] == [3, 6, 9]
    best = min(lines, key=lambda line: line["validation_nll"])
    assert (fitted.selected_step, fitted.validation_nll) == (best["step"], best["validation_nll"])
    assert fitted.run.load("done")["selected_step"] == best["step"]
    rows = {row.metric: row for row in fitted.run.rows()}
    assert {row.step for row in rows.values()} == {best["step"]}
    assert rows["validation_ppl"].value == pytest.approx(math.exp(best["validation_nll"]))
    assert 0 < rows["train_seconds"].value <= fitted.seconds
    logged = [entry["tokens_per_second"] for entry in fitted.run.metrics() if entry.get("tokens_per_second")]
    assert rows["tokens_per_second"].value == statistics.median(logged)
    assert list(fitted.run.checkpoints.iterdir()) == []


@pytest.mark.parametrize("step", [0, 4, 8])
def test_stopped_anywhere_it_goes_on_and_ends_alike(gpt2, data, new_run, step):
    train, validation = data
    whole = fit(gpt2(), "sg=linear:1.0:0.2:6", train, validation, new_run("whole"), SETTINGS)
    with pytest.raises(Stop):
        fit(gpt2(), "sg=linear:1.0:0.2:6", train, validation, new_run("cut"), SETTINGS, callbacks=[StopAt(step)])
    start = gpt2(7) if step > 2 else gpt2()  # before the first checkpoint, the same start is up to the caller
    torch.manual_seed(1234)  # another process: nothing of the first one's state is left
    cut = fit(start, "sg=linear:1.0:0.2:6", train, validation, new_run("cut"), SETTINGS)
    assert cut.selected_step == whole.selected_step
    for name, value in weights(whole.run).items():
        assert torch.equal(value, weights(cut.run)[name]), name
    assert log(cut.run) == log(whole.run)
    assert cut.validation_nll == whole.validation_nll


def test_the_selected_model_is_that_of_its_step_and_patience_ends_the_run(gpt2, data, new_run):
    """A learning rate that ruins the model after the first evaluation: the first one is kept."""
    train, validation = data
    settings = replace(SETTINGS, learning_rate=0.3, schedule="constant", max_steps=30, evaluate_every=1, patience=3)
    fitted = fit(gpt2(), "mle", train, validation, new_run("a"), settings)
    values = [line["validation_nll"] for line in log(fitted.run) if "validation_nll" in line]
    best = values.index(min(values)) + 1
    assert (fitted.selected_step, fitted.steps, len(values)) == (best, best + 3, best + 3)
    shorter = fit(gpt2(), "mle", train, None, new_run("b"), replace(settings, max_steps=best, patience=None))
    for name, value in weights(shorter.run).items():
        assert torch.equal(value, weights(fitted.run)[name]), name


def test_a_finished_run_is_loaded_not_trained(gpt2, data, new_run):
    train, validation = data
    first = fit(gpt2(), "mle", train, validation, new_run("a"), SETTINGS)
    before = (first.run.path / "metrics.jsonl").read_bytes()
    second = fit(gpt2(5), "mle", train, validation, new_run("a"), SETTINGS)
    assert (second.selected_step, second.validation_nll) == (first.selected_step, first.validation_nll)
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert (first.run.path / "metrics.jsonl").read_bytes() == before


def test_nan_stops_says_where_and_keeps_the_last_good_checkpoint(gpt2, data, new_run):
    class Poison(TrainerCallback):
        def on_step_begin(self, args, state, control, model=None, **_):
            if state.global_step == 5:
                with torch.no_grad():
                    model.transformer.wte.weight[3:] = float("nan")

    run = new_run("a")
    with pytest.raises(NotFinite, match=r"^the loss became nan at step 6 .*the last good checkpoint is that of step 4"):
        fit(gpt2(), "sg=0.2", *data, run, SETTINGS, callbacks=[Poison()])
    kept = load_file(checkpoints.path_of(run.checkpoints, 4) / "model.safetensors")
    assert all(value.isfinite().all() for value in kept.values())
    assert not run.finished
    cured = fit(gpt2(), "sg=0.2", *data, run, SETTINGS)  # the poison gone, it goes on
    whole = fit(gpt2(), "sg=0.2", *data, new_run("b"), SETTINGS)
    assert all(torch.equal(value, weights(whole.run)[name]) for name, value in weights(cured.run).items())


def test_weights_that_break_under_a_good_loss_are_never_saved(gpt2, data, new_run):
    class Poison(TrainerCallback):
        def on_optimizer_step(self, args, state, control, model=None, **_):
            if state.global_step == 3:
                with torch.no_grad():
                    model.transformer.wte.weight[3:] = float("nan")

    run = new_run("a")
    with pytest.raises(NotFinite, match=r"^a weight became NaN or infinite at step 4 .*checkpoint is that of step 3"):
        fit(gpt2(), "sg=0.2", *data, run, SETTINGS, callbacks=[Poison()])


class Harm:
    """What a pickle can do to whoever loads it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_checkpoint_is_data_not_code(gpt2, data, new_run, tmp_path):
    run = new_run("a")
    with pytest.raises(Stop):
        fit(gpt2(), "mle", *data, run, SETTINGS, callbacks=[StopAt(5)])
    checkpoint = checkpoints.path_of(run.checkpoints, checkpoints.steps(run.checkpoints)[-1])
    assert (checkpoint / "model.safetensors").exists()
    torch.save({"state": Harm(tmp_path / "harm")}, checkpoint / "optimizer.pt")
    (checkpoint / checkpoints.MANIFEST).unlink()
    os.rename(checkpoint, tmp_path / "planted")
    checkpoints.seal(tmp_path / "planted", checkpoint)
    with pytest.raises(ValueError, match=r"^the checkpoint .*checkpoint-4 cannot be loaded \(Weights only load failed"):
        fit(gpt2(), "mle", *data, run, SETTINGS)
    assert not (tmp_path / "harm").exists()


def test_a_model_that_cannot_be_written_leaves_nothing_half_done(gpt2, data, new_run):
    class Full:
        pad_token_id = 0

        def save_pretrained(self, folder):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run = new_run("a")
    sentence = r"^the model of step \d could not be written to .* \(No space left on device\); .* goes on from step 9$"
    with pytest.raises(checkpoints.CheckpointError, match=sentence):
        fit(gpt2(), "mle", *data, run, SETTINGS, tokenizer=Full())
    assert not run.finished
    assert not run.model_path.exists()
    assert not (run.path / ".model").exists()
    again = fit(gpt2(7), "mle", *data, run, SETTINGS)  # nothing is left to train
    whole = fit(gpt2(), "mle", *data, new_run("b"), SETTINGS)
    assert log(again.run) == log(whole.run)
    assert all(torch.equal(value, weights(whole.run)[name]) for name, value in weights(again.run).items())


def test_an_encoder_decoder(new_run):
    """Unequal lengths on both sides; the NLL is that of every label, the first included."""
    import transformers as hf

    sides = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 1), ("ffn_dim", 16))}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    torch.manual_seed(0)
    config = hf.BartConfig(
        vocab_size=30, d_model=16, max_position_embeddings=16, pad_token_id=0, bos_token_id=2, eos_token_id=1,
        decoder_start_token_id=1, forced_eos_token_id=None, **sides, **heads,
    )  # fmt: skip
    rows = [(torch.randint(3, 30, (4 + i % 3,)), torch.randint(3, 30, (3 + i % 4,))) for i in range(12)]
    data = [{"input_ids": source, "labels": target} for source, target in rows]
    settings = replace(SETTINGS, max_steps=3, batch=4, accumulation=1)
    fitted = fit(hf.BartForConditionalGeneration(config), "sg=0.8", data[:8], data[8:], new_run("a"), settings)
    model = hf.BartForConditionalGeneration.from_pretrained(fitted.run.model_path).eval()
    with torch.no_grad():
        losses = [len(t) * model(input_ids=s[None], labels=t[None]).loss.item() for s, t in rows[8:]]
    assert fitted.validation_nll == pytest.approx(sum(losses) / sum(len(t) for _, t in rows[8:]), rel=1e-5)


def test_out_of_memory_is_one_sentence(gpt2, data, new_run):
    class Hungry(TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 2:
                torch.empty(2**60, dtype=torch.uint8)

    sentence = r"^out of memory at step 3: lower batch from 3 to 1 \(accumulation 6 keeps the step's size\), or turn"
    with pytest.raises(ValueError, match=sentence):
        fit(gpt2(), "sg=0.2", *data, new_run("a"), SETTINGS, callbacks=[Hungry()])


def test_the_saved_model_says_what_it_was_trained_for(gpt2, data, new_run):
    fitted = fit(gpt2(), "sg=0.5", *data, new_run("a"), SETTINGS)
    loaded = GPT2LMHeadModel.from_pretrained(fitted.run.model_path)
    assert loaded.config.scalegrad["objective"] == "sg"
    assert loaded.config.scalegrad["gamma"] == 0.5
    assert loaded.config.use_cache
    plain = loaded(input_ids=torch.tensor([[4, 5, 6]]), labels=torch.tensor([[4, 5, 6]]))
    assert plain.logits.shape == (1, 3, 40)  # no attachment on a loaded model


def test_batches_of_a_sampler_of_ones_own(gpt2, data, new_run):
    """Batches by a budget of tokens: all examples once an epoch, another order each time."""
    train, _ = data
    asked = []

    def by_tokens(rows, seed):
        asked.append(seed)
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).tolist()
        batch: list[int] = []
        for index in order:
            if batch and (len(batch) + 1) * 12 > 40:
                yield batch
                batch = []
            batch.append(index)
        yield batch

    seen: list[int] = []

    def collate(rows):
        seen.extend(len(row["input_ids"]) for row in rows)
        return Pad(0)(rows)

    settings = replace(SETTINGS, accumulation=1, max_steps=None, epochs=2)
    fitted = fit(gpt2(), "mle", train, None, new_run("a"), settings, batch_sampler=by_tokens, collate=collate)
    assert fitted.steps == 18  # 9 batches of at most 3 examples, twice
    assert sorted(seen) == sorted(2 * [len(row["input_ids"]) for row in train])
    assert len(set(asked)) == 2


class Take(TrainerCallback):
    """Takes memory in the first step, and gives it back."""

    def __init__(self, mib):
        self.mib = mib

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == 0:
            bytearray(b"x") * (self.mib * 2**20)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the peak told is the GPU's")
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no /proc/self/clear_refs here")
def test_the_peak_of_memory_is_the_run_s_own(gpt2, data, new_run):
    """A run that takes 256 MiB more at a time, and one after it in the same process that does not."""
    settings = replace(SETTINGS, max_steps=1, accumulation=1)
    peaks = [
        fit(gpt2(), "mle", *data, new_run(name), settings, callbacks=[Take(mib)]).peak_memory_mib
        for name, mib in (("small", 1), ("large", 256), ("small-again", 1))
    ]
    assert peaks[1] - peaks[0] > 200
    assert peaks[1] - peaks[2] > 200


@pytest.mark.skipif(torch.cuda.is_available(), reason="the peak told is the GPU's")
def test_a_peak_that_is_not_known_is_left_out(gpt2, data, new_run, monkeypatch):
    monkeypatch.setitem(fit.__globals__, "forget_peak", lambda: False)
    fitted = fit(gpt2(), "mle", *data, new_run("run"), replace(SETTINGS, max_steps=1))
    assert fitted.peak_memory_mib is None
    assert fitted.run.load("done")["peak_memory_mib"] is None
