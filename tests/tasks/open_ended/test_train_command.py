"""`scalegrad train` from the outside: real processes that are killed, run out of disk or may not write."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from scalegrad.cli import main
from scalegrad.runs import Run
from scalegrad.training import checkpoints
from tests.tasks.open_ended import training_process

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
WORDS = ("the", "horses", "are", "brown", "and", "white", "run", "over", "green", "hills", "while", "a", "small", "dog")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a GPT-2 of 36,000 weights, with dropout, and a tokenizer of single bytes."""
    import transformers as hf
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({"<e>": 0, **{letter: i for i, letter in enumerate(alphabet, 1)}}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<e>", pad_token="<e>").save_pretrained(folder)
    torch.manual_seed(0)
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    config = hf.GPT2Config(vocab_size=257, n_embd=32, n_layer=2, n_head=2, n_positions=64, **ids)
    hf.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(" ".join(random.Random(0).choices(WORDS, k=1500)))
    return path


def options(model, text, out, *more):
    usual = (
        "--length",
        32,
        "--batch",
        2,
        "--accumulation",
        2,
        "--lr",
        0.01,
        "--evaluate-every",
        6,
        "--save-every",
        4,
    )
    return ["train", model, text, "--out", out, *usual, "--max-steps", 14, "--log-every", 5, *more]


def train(*arguments):
    with pytest.raises(SystemExit) as end:
        main(list(map(str, arguments)))
    assert end.value.code == 0


def refused(capsys, *arguments):
    """The one sentence on standard error, with exit code 2."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(list(map(str, arguments)))
    (sentence,) = remarks(capsys.readouterr().err)
    assert end.value.code == 2
    assert sentence.startswith("scalegrad: ")
    return f"{sentence.removeprefix('scalegrad: ')}\n"


def weights(folder):
    return (folder / "model" / "model.safetensors").read_bytes()


def log(folder):
    times = ("seconds", "tokens_per_second")
    return [{key: value for key, value in line.items() if key not in times} for line in Run.open(folder).metrics()]


def remarks(errors):
    """What stands on standard error beside progress and what was read."""
    usual = re.compile(r": [\d,]+ of [\d,]+$|^data: |^start symbol: |^validation: ")
    return [line for line in errors.splitlines() if not usual.search(line)]


def test_bad_records_are_left_out_on_demand(model, text, tmp_path, capsys, monkeypatch):
    lines = json.dumps({"text": text.read_text()}) + "\nbroken\n"
    (tmp_path / "a.jsonl").write_text(lines)
    few = ("--length", 32, "--batch", 2, "--max-steps", 1, "--validation", "none", "--tracker", "none")
    words = ("train", model, tmp_path / "a.jsonl", *few, "--out")
    assert "a.jsonl, line 2: not JSON" in refused(capsys, *words, tmp_path / "none")
    train(*words, tmp_path / "run", "--skip-bad", "--seeds", 2)
    assert capsys.readouterr().err.count("1 left out: 1 × not JSON") == 1  # both seeds read the same
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(lines.encode())))
    train("train", model, "-", *few, "--field", "text", "--skip-bad", "--out", tmp_path / "piped")
    assert Run.open(tmp_path / "piped").finished


@pytest.fixture(scope="module")
def uninterrupted(model, text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    code, errors = training_process.finished(options(model, text, folder), folder.parent)
    assert (code, remarks(errors)) == (0, [])
    return folder


def test_kill_nine_at_three_random_points_gives_the_same_weights(model, text, uninterrupted, tmp_path):
    """Killed while lines of the log appear, anywhere in a step or a checkpoint; the last start is a plain command."""
    seed = random.SystemRandom().randrange(10**6)
    chance, folder = random.Random(seed), tmp_path / "run"
    killed_at = []
    for kill in range(3):
        process = training_process.start(options(model, text, folder), tmp_path)
        wanted = 3 * kill + chance.randrange(1, 4)
        while process.is_alive() and not (_starts(folder) > kill and _logged(folder, wanted)):
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        process.join()
        killed_at.append(len(log(folder)))
        assert process.exitcode == -9, f"seed {seed}: it ended before it was killed"
    command = [sys.executable, "-m", "scalegrad.cli", *map(str, options(model, text, folder))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=ONE_THREAD)
    assert (done.returncode, remarks(done.stderr)) == (0, []), f"seed {seed}, {killed_at}"
    assert "step" in done.stdout
    assert weights(folder) == weights(uninterrupted), f"seed {seed}, killed after {killed_at} lines"
    assert log(folder) == log(uninterrupted), f"seed {seed}, killed after {killed_at} lines"
    ends = [json.loads((path / "done.json").read_text()) for path in (folder, uninterrupted)]
    assert len({(end["selected_step"], end["validation_nll"]) for end in ends}) == 1
    assert _starts(folder) == 4


def _starts(folder):
    path = folder / "environment.json"
    return len(json.loads(path.read_text())["starts"]) if path.exists() else 0


def _logged(folder, step):
    path = folder / "metrics.jsonl"
    return path.exists() and any(line["step"] >= step for line in Run.open(folder).metrics())


@pytest.mark.parametrize("limit", [60_000, 200_000], ids=["weights", "optimizer"])
def test_a_disk_that_fills_up(model, text, uninterrupted, tmp_path, limit):
    """A limit on file sizes, so that weights (146 kB) or the optimizer's state (300 kB) cannot be written whole."""
    folder = tmp_path / "run"
    code, errors = training_process.finished(options(model, text, folder), tmp_path, file_size=limit)
    assert code == 2
    (sentence,) = remarks(errors)
    assert sentence.startswith(f"scalegrad: the checkpoint of step 4 could not be written to {folder}/checkpoints (")
    assert sentence.endswith("once that is put right, the same command starts again")
    assert list((folder / "checkpoints").iterdir()) == []
    assert not (folder / "done.json").exists()
    train(*options(model, text, folder))
    assert weights(folder) == weights(uninterrupted)


def test_folders_that_cannot_be_written_to(model, text, uninterrupted, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    code, errors = training_process.finished(options(model, text, locked / "run"), tmp_path, powerless=True)
    assert (code, errors) == (2, f"scalegrad: --out: {locked}/run cannot be written to (Permission denied)\n")

    folder = tmp_path / "run"
    process = training_process.start(options(model, text, folder), tmp_path, powerless=True)
    while process.is_alive() and not checkpoints.steps(folder / "checkpoints"):
        time.sleep(0.002)
    (folder / "checkpoints").chmod(0o555)  # while it runs
    process.join(240)
    (folder / "checkpoints").chmod(0o755)
    errors = (tmp_path / "errors.txt").read_text()
    assert process.exitcode == 2, errors
    (sentence,) = remarks(errors)
    assert sentence.startswith("scalegrad: the checkpoint of step ")
    assert "(Permission denied); once that is put right, the same command goes on from step " in sentence
    train(*options(model, text, folder))
    assert weights(folder) == weights(uninterrupted)


def test_a_broken_checkpoint_is_not_taken(model, text, uninterrupted, tmp_path):
    """A newest checkpoint that lost the end of a file is passed over for the one before, or for the start."""
    folder = tmp_path / "run"
    process = training_process.start(options(model, text, folder), tmp_path)
    while process.is_alive() and not _logged(folder, 9):
        time.sleep(0.002)
    process.kill()
    process.join()
    for step in checkpoints.steps(folder / "checkpoints")[-1:]:
        broken = folder / "checkpoints" / f"checkpoint-{step}" / "optimizer.pt"
        os.truncate(broken, broken.stat().st_size - 1)
        assert step not in checkpoints.steps(folder / "checkpoints")
    train(*options(model, text, folder))
    assert weights(folder) == weights(uninterrupted)


def test_two_processes_with_fsdp2_learn_what_one_learns(model, text, tmp_path):
    """torchrun, a sharded model, ScaleGrad on the fused path; what is saved loads, and is the one process's model."""
    import transformers as hf

    still = tmp_path / "still"
    shutil.copytree(model, still)
    config = json.loads((model / "config.json").read_text())
    config |= dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)  # processes draw dropout differently
    (still / "config.json").write_text(json.dumps(config))
    (tmp_path / "fsdp.json").write_text(json.dumps({"version": 2, "transformer_layer_cls_to_wrap": ["GPT2Block"]}))
    same = ("--max-steps", 6, "--evaluate-every", 3, "--save-every", 3, "--tracker", "none")
    one = options(still, text, tmp_path / "one", *same)
    two = options(still, text, tmp_path / "two", *same, "--accumulation", 1, "--fsdp", tmp_path / "fsdp.json")
    train(*one)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", _free_port()]
    command = [*torchrun, "-m", "scalegrad.cli", *map(str, two)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    assert Run.open(tmp_path / "two").load("done")["parallelism"] == "FSDP"  # Accelerate alone would use DDP on CPUs
    assert "whole logits" not in done.stderr  # what the attachment says when it cannot fuse
    assert done.stdout.count("validation perplexity") == 1  # one process reports
    loaded, info = hf.AutoModelForCausalLM.from_pretrained(tmp_path / "two" / "model", output_loading_info=True)
    assert not info["missing_keys"]
    assert loaded.config.scalegrad["gamma"] == 0.2
    expected = hf.AutoModelForCausalLM.from_pretrained(tmp_path / "one" / "model").state_dict()
    for name, value in loaded.state_dict().items():
        torch.testing.assert_close(value, expected[name], atol=2e-4, rtol=1e-4, msg=name)
    for key in ("validation_nll", "nll", "seen_mass", "loss"):
        values = [[line[key] for line in log(tmp_path / run) if key in line] for run in ("one", "two")]
        assert values[0] == pytest.approx(values[1], rel=1e-4), key


def _free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def test_seeds_json_and_completing_with_what_came_out(model, text, tmp_path, capsys):
    few = ("--max-steps", 2, "--seeds", 2, "--objective", "ul=0.5", "--tracker", "none", "--evaluate-every", 2)
    train(*options(model, text, tmp_path / "runs", *few, "--json"))
    told = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in told["runs"]] == [str(tmp_path / "runs" / f"seed-{n}") for n in (0, 1)]
    assert told["objective"] == "ul=0.5"
    first, second = (weights(Path(run["run"])) for run in told["runs"])
    assert first != second
    (tmp_path / "p.txt").write_text("the horses\n")
    few = ("--new-tokens", 20, "--out", tmp_path / "c.jsonl")
    train("complete", told["runs"][0]["run"], "--prompts", tmp_path / "p.txt", *few)
    assert json.loads((tmp_path / "c.jsonl").read_text())["tokens"] > 0
    assert not (tmp_path / "runs" / "seed-0" / "tensorboard").exists()


def test_lora_leaves_an_adapter_and_a_merged_model(model, text, tmp_path):
    """The merged model is the old one plus the low-rank products of the adapter, and nothing else changed."""
    few = ("--max-steps", 3, "--evaluate-every", 3, "--tracker", "none", "--lora", 4)
    train(*options(model, text, tmp_path / "run", *few))
    before = load_file(model / "model.safetensors")
    after = load_file(tmp_path / "run" / "model" / "model.safetensors")
    adapter = load_file(tmp_path / "run" / "adapter" / "adapter_model.safetensors")
    assert set(before) == set(after)
    name = "transformer.h.0.attn.c_attn"
    down, up = (adapter[f"base_model.model.{name}.lora_{side}.weight"] for side in "AB")
    assert up.abs().max() > 0
    torch.testing.assert_close(after[f"{name}.weight"], before[f"{name}.weight"] + 2.0 * (up @ down).T)
    assert torch.equal(after["transformer.wte.weight"], before["transformer.wte.weight"])


def test_tensorboard_has_the_curves(uninterrupted):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(uninterrupted / "tensorboard"))
    events.Reload()
    told = {line["step"]: line["seen_mass"] for line in log(uninterrupted) if "seen_mass" in line}
    assert {event.step for event in events.Scalars("train/seen_mass")} == set(told)
    for event in events.Scalars("train/seen_mass"):
        assert event.value == pytest.approx(told[event.step], rel=1e-6)
    assert [event.step for event in events.Scalars("eval/loss")] == [6, 12, 14]


def test_mistakes_are_one_sentence(model, text, tmp_path, capsys):
    out = tmp_path / "run"

    def told(*arguments):
        return refused(capsys, *arguments)

    assert told("train", model) == "DATA is missing; scalegrad train --help says what it is\n"
    assert "objective must be mle, ul=α, sg=γ" in told(*options(model, text, out, "--objective", "sq"))
    assert "--gamma is the strength of sg, and the objective is mle" in told(
        *options(model, text, out, "--objective", "mle", "--gamma", 0.2)
    )
    assert "leave out --gamma" in told(*options(model, text, out, "--objective", "sg=0.5", "--gamma", 0.2))
    assert "gamma must be a number in (0, 1], not 2.0" in told(*options(model, text, out, "--gamma", 2))
    assert "schedule must be one of linear" in told(*options(model, text, out, "--schedule", "wavy"))
    for option in ("--lora-alpha", "--lora-dropout"):
        assert "their rank, too" in told(*options(model, text, out, option, 0.5))
    assert "recipe must be paper, not 'soup'" in told("train", "--recipe", "soup")
    assert "there is no file or folder" in told(*options(model, tmp_path / "none.txt", out))
    assert "there is no file or folder /nowhere" in told(*options("/nowhere", text, out))
    assert "length is 300, more than the model's 64 positions" in told("train", model, text, "--out", out)
    assert "give --max-steps (14) or epochs (1.0), not both" in told(*options(model, text, out, "--epochs", 1))
    assert "fsdp: there is no configuration file none.json" in told(*options(model, text, out, "--fsdp", "none.json"))
    assert not out.exists()


@pytest.mark.parametrize(
    ("verb", "extra"), [("train", "train"), ("demo", "demo"), ("sweep", "demo"), ("summarize", "summarize")]
)
def test_without_accelerate_every_verb_that_trains_says_what_brings_it(verb, extra, monkeypatch, capsys, tmp_path):
    """`pip install transformers` does not bring it."""
    monkeypatch.setitem(sys.modules, "accelerate", None)
    arguments = {
        "train": ["base", "wikitext-2"],
        "demo": [],
        "sweep": ["base", "wikitext-2", "--out", "out"],
        "summarize": ["train", "--out", "out"],
    }
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, verb, *arguments[verb])
    assert said == f'accelerate is needed here: pip install "scalegrad[{extra}]"\n'


def test_another_run_in_the_folder_is_refused(model, text, uninterrupted, capsys):
    told = refused(capsys, *options(model, text, uninterrupted, "--gamma", 0.5))
    assert 'holds another run: its objective is "sg=0.2", not "sg=0.5"; name another folder' in told


def test_a_run_is_gone_on_with_however_its_paths_are_spelled(model, text, uninterrupted, monkeypatch, capsys):
    """Finished already: loaded, and not trained again; its record stays as it was written."""
    before = (uninterrupted / "config.json").read_bytes(), weights(uninterrupted)
    monkeypatch.chdir(model.parent)
    train(*options(f"./{model.name}/", os.path.relpath(text), f"{uninterrupted}/../{uninterrupted.name}/"))
    assert ((uninterrupted / "config.json").read_bytes(), weights(uninterrupted)) == before
