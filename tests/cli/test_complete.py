"""`scalegrad complete` from the outside: real model folders, real files, a real kill."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from scalegrad import decoding
from scalegrad.cli import main

torch.set_num_threads(1)

CORPUS = "the cat sat on the mat and the dog ran to the cat . a bird sang over the river .\n"


def save_tokenizer(folder: Path, eos_at_end: bool = False) -> int:
    """A byte-level BPE of about 300 ids, trained on the corpus above; returns its size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([CORPUS] * 20, trainer)
    if eos_at_end:
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>").save_pretrained(folder)
    return int(tokenizer.get_vocab_size())


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers as hf

    folder = tmp_path_factory.mktemp("gpt2")
    size = save_tokenizer(folder)
    torch.manual_seed(0)
    config = hf.GPT2Config(
        vocab_size=size, n_embd=32, n_layer=2, n_head=2, n_positions=256, initializer_range=0.3, pad_token_id=0,
        eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    hf.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def summariser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers as hf

    folder = tmp_path_factory.mktemp("t5")
    size = save_tokenizer(folder, eos_at_end=True)
    torch.manual_seed(0)
    config = hf.T5Config(
        vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0,
    )  # fmt: skip
    hf.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture
def prefixes(tmp_path: Path) -> Path:
    path = tmp_path / "prefixes.txt"
    path.write_text("the cat\na bird sang\n the river\ncafé ☕\n")
    return path


def complete(*arguments: object) -> None:
    with pytest.raises(SystemExit) as end:
        main(["complete", *map(str, arguments)])
    assert end.value.code == 0


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_of_lines(causal: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    complete(causal, "--prompts", prefixes, "--out", out, "--new-tokens", 12, "--json")
    told = json.loads(capsys.readouterr().out)
    made = lines(out)
    assert [line["prefix"] for line in made] == prefixes.read_text().splitlines()
    model, tokenizer = decoding.load(str(causal), device="cpu")
    for line in made:
        (new,) = decoding.generate(model, [tokenizer(line["prefix"])["input_ids"]], new_tokens=12)
        assert line["continuation"] == tokenizer.decode(new, skip_special_tokens=True)
        assert line["tokens"] == len(new)
    assert told["texts"] == 4
    assert told["new_tokens"] == sum(line["tokens"] for line in made)
    assert told["strategy"] == "greedy"
    meta = json.loads((tmp_path / "out.jsonl.meta.json").read_text())["settings"]
    assert meta["model"] == str(causal)
    assert meta["versions"]["torch"] == torch.__version__


def test_one_continuation_is_said_in_the_singular(
    causal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.txt").write_text("the horses are\n")
    out = tmp_path / "out.jsonl"
    complete(causal, "--prompts", tmp_path / "one.txt", "--out", out, "--new-tokens", 2)
    assert f"1 continuation by greedy in {out} (" in capsys.readouterr().err


def test_empty_lines_are_no_prefixes(causal: Path, tmp_path: Path) -> None:
    """The tokenizer has no start symbol, so an empty prefix could not be continued."""
    folder, out = tmp_path / "prompts", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "a.txt").write_text("the cat\n\n  \na bird\n\n")
    (folder / "b.txt").write_text("\nthe dog\n")
    complete(causal, "--prompts", folder, "--new-tokens", 2, "--out", out)
    assert [json.loads(line)["prefix"] for line in out.read_text().splitlines()] == ["the cat", "a bird", "the dog"]


def test_bad_lines_are_left_out_on_demand(causal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    prompts.write_text('{"prefix": "the cat"}\nbroken\n{"prefix": ""}\n')  # this tokenizer has no start symbol
    assert "prompts.jsonl, line 2: not JSON" in refused(capsys, causal, "--prompts", prompts, "--out", out)
    complete(causal, "--prompts", prompts, "--new-tokens", 2, "--out", out, "--skip-bad")
    assert [json.loads(line)["prefix"] for line in out.read_text().splitlines()] == ["the cat"]
    assert capsys.readouterr().err.count("2 left out: ") == 1


def test_jsonl_csv_and_standard_input_give_the_same(
    causal: Path,
    prefixes: Path,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = prefixes.read_text().splitlines()
    options = ("--new-tokens", 8, "--strategy", "top_p=0.9,temperature=1.2", "--penalty", 0.5)
    complete(causal, "--prompts", prefixes, "--out", tmp_path / "txt", *options)
    expected = (tmp_path / "txt").read_bytes()

    (tmp_path / "p.jsonl").write_text("".join(json.dumps({"id": 7, "prefix": text}) + "\n" for text in texts))
    complete(causal, "--prompts", tmp_path / "p.jsonl", "--out", tmp_path / "jsonl", *options)
    assert (tmp_path / "jsonl").read_bytes() == expected

    (tmp_path / "p.csv").write_text("n,start\n" + "".join(f"1,{text}\n" for text in texts))
    complete(causal, "--prompts", tmp_path / "p.csv", "--field", "start", "--out", tmp_path / "csv", *options)
    assert (tmp_path / "csv").read_bytes() == expected

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(prefixes.read_bytes())))
    capsysbinary.readouterr()
    complete(causal, "--prompts", "-", *options)
    assert capsysbinary.readouterr().out == expected


def test_gamma_is_the_novelty_penalty(causal: Path, prefixes: Path, tmp_path: Path) -> None:
    repeated = []
    for gamma in (1.0, 0.001):
        out = tmp_path / f"{gamma}"
        complete(causal, "--prompts", prefixes, "--out", out, "--new-tokens", 40, "--penalty", gamma)
        words = [line["continuation"] for line in lines(out)]
        repeated.append(sum(len(text) - len(set(text)) for text in words))
    meta = json.loads((tmp_path / "0.001.meta.json").read_text())["settings"]
    assert meta["strategy"] == "greedy,gamma=0.001"
    assert repeated[1] < repeated[0]


def test_an_encoder_decoder_with_a_beam(summariser: Path, prefixes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    complete(
        summariser, "--prompts", prefixes, "--out", out, "--strategy", "beam=3,gnmt=1.0,block_words=3",
        "--min-new-tokens", 5, "--new-tokens", 9,
    )  # fmt: skip
    assert all(5 <= line["tokens"] <= 9 for line in lines(out))


def test_the_papers_protocol_on_a_text_of_ones_own(causal: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(CORPUS * 40)
    out = tmp_path / "out.jsonl"
    complete(causal, "--protocol", "paper", "--text", tmp_path / "text.txt", "--limit", 7, "--out", out)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(causal)
    ids = tokenizer.encode("\n ".join([CORPUS.strip()] * 40), add_special_tokens=False)
    made = lines(out)
    # Six prefixes of 50 from the first 301 ids, then the next chunk begins at id 301.
    starts = [0, 50, 100, 150, 200, 250, 301]
    assert [line["prefix"] for line in made] == [tokenizer.decode(ids[at : at + 50]) for at in starts]
    assert all(line["tokens"] == 100 for line in made)


def test_the_papers_protocol_on_wikitext(tmp_path: Path) -> None:
    """GPT-2's vocabulary cuts the embedded test set into 5,772 prefixes; the first two are looked at."""
    import transformers as hf

    from scalegrad.data import gpt2_tokenizer

    folder = tmp_path / "model"
    hf.PreTrainedTokenizerFast(tokenizer_object=gpt2_tokenizer(), eos_token="<|endoftext|>").save_pretrained(folder)
    config = hf.GPT2Config(n_embd=8, n_layer=1, n_head=1, n_positions=150)
    hf.GPT2LMHeadModel(config).save_pretrained(folder)
    complete(folder, "--protocol", "paper", "--limit", 2, "--out", tmp_path / "out")
    made = lines(tmp_path / "out")
    assert made[0]["prefix"].startswith("= Robert Boulter = \n")
    assert [len(gpt2_tokenizer().encode(line["prefix"]).ids) for line in made] == [50, 50]
    assert [line["tokens"] for line in made] == [100, 100]


@pytest.mark.slow
def test_kill_nine_and_resume_gives_the_same_file(causal: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"the cat {'sat ' * (number % 7)}number {number}\n" for number in range(60)))
    options = ["--prompts", many, "--strategy", "top_p=0.9", "--new-tokens", 60, "--batch", 2, "--device", "cpu"]
    complete(causal, *options, "--out", tmp_path / "whole.jsonl")
    out, partial = tmp_path / "cut.jsonl", tmp_path / "cut.jsonl.partial"
    command = [sys.executable, "-m", "scalegrad.cli", "complete", str(causal), *map(str, options), "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(decoding.__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    for wanted in (1, 1500):  # bytes that must be there before the plug is pulled
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        before = time.monotonic()
        while process.poll() is None and time.monotonic() - before < 120:
            if partial.exists() and partial.stat().st_size >= wanted:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.002)
        _, error = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, error.decode()
        assert not out.exists()
    complete(causal, *options, "--out", out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not partial.exists()


BAD_FILES = {
    "binary.txt": (b"\x00\x01\x02\xff" * 50, "NUL byte"),
    "latin.txt": ("caf\xe9 au lait\n".encode("latin-1"), "not UTF-8"),
    "broken.jsonl": (b'{"prefix": "fine"}\n{"prefix": \n', "line 2: not JSON"),
    "other.jsonl": (b'{"title": "x", "body": "y"}\n', "line 1: no field 'prefix'"),
    "number.jsonl": (b'{"prefix": 3}\n', "line 1: field 'prefix' is a number, not a text"),
    "empty.txt": (b"", "is empty"),
    "empty.jsonl": (b"", "is empty"),
    "image.png": (b"\x89PNG", "its suffix '.png' is not one of"),
}


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence on standard error, with exit code 2; before it at most the line that a model is loaded."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["complete", *map(str, arguments)])
    told = capsys.readouterr()
    assert end.value.code == 2
    assert told.out == ""
    *before, last = told.err.splitlines()
    assert last.startswith("scalegrad: ")
    assert len(before) < 2
    assert all(line.startswith("loading ") for line in before)
    return last


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_get_one_sentence(
    name: str, causal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, says = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    assert says in refused(capsys, causal, "--prompts", tmp_path / name, "--out", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give either --prompts FILE or --protocol paper"),
        (["--prompts", "P", "--protocol", "paper"], "give either --prompts FILE or --protocol paper"),
        (["--protocol", "other"], "--protocol must be paper, not 'other'"),
        (["--protocol", "paper", "--new-tokens", 5], "--protocol paper means 100 new tokens"),
        (["--prompts", "P", "--text", "P"], "--text is what --protocol cuts"),
        (["--prompts", "P", "--strategy", "best"], "the name must be one of greedy, beam"),
        (["--prompts", "P", "--penalty", 2], "gamma must be in (0, 1], not 2.0"),
        (["--prompts", "P", "--penalty", 0.5, "--strategy", "greedy,gamma=0.2"], "give one of them"),
        (["--prompts", "P", "--batch", "many"], "expected auto or a whole number"),
        (["--prompts", "P", "--limit", 0], "--limit must be at least 1"),
        (["--prompts", "P", "--device", "cuda:99"], "device 'cuda:99' cannot be used here"),
        (["--prompts", "P", "--dtype", "int8"], "dtype must be one of auto, float32"),
        (["--prompts", "P", "--json"], "give --out FILE"),
        (["--prompts", "missing.txt"], "missing.txt: there is no such file"),
        (["--prompts", "P", "--new-tokens", 0], "--new-tokens must be at least 1, not 0"),
        (["--prompts", "P", "--new-tokens", 300], "more than the model's 256 positions"),
        (["--protocol", "paper", "--text", "P"], "the protocol cuts its prefixes from chunks of 301"),
    ],
)
def test_mistakes_get_one_sentence(
    arguments: list[Any], says: str, causal: Path, prefixes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, causal, *(prefixes if argument == "P" else argument for argument in arguments))
    assert says in told


def test_bad_models_get_one_sentence(
    causal: Path, summariser: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    assert "there is no file or folder ./nowhere" in refused(capsys, "./nowhere", "--prompts", prefixes)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "is an empty folder" in refused(capsys, empty, "--prompts", prefixes)
    torn = tmp_path / "torn"
    shutil.copytree(causal, torn)
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert "cannot be read" in refused(capsys, torn, "--prompts", prefixes)
    assert "is an encoder-decoder" in refused(capsys, summariser, "--protocol", "paper")


def test_a_checkpoint_without_all_weights_is_refused(
    causal: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    folder = tmp_path / "half"
    shutil.copytree(causal, folder)
    weights = load_file(folder / "model.safetensors")
    dropped = next(name for name in weights if "h.1.attn.c_attn.weight" in name)
    save_file({k: v for k, v in weights.items() if k != dropped}, folder / "model.safetensors", {"format": "pt"})
    assert "lacks 1 weight a language model needs" in refused(capsys, folder, "--prompts", prefixes)


def test_an_output_one_may_not_write(
    causal: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said before the model is loaded, by the option's name."""
    monkeypatch.setattr(decoding, "load", lambda *_: pytest.fail("the model was loaded"))
    options = (causal, "--prompts", prefixes, "--out")
    told = refused(capsys, *options, "/proc/nowhere/out.jsonl")
    assert told.startswith("scalegrad: --out: /proc/nowhere cannot be written to (")
    told = refused(capsys, *options, prefixes / "out.jsonl")
    assert told == f"scalegrad: --out: {prefixes} is a file; expected a folder to write to"
    told = refused(capsys, *options, tmp_path)
    assert told == f"scalegrad: --out: {tmp_path} is a folder; expected the name of a file to write"
    assert list(tmp_path.iterdir()) == [prefixes]


def test_the_folder_of_the_output_is_made_when_there_is_something_to_write(
    causal: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "deep" / "out.jsonl"
    options = (causal, "--prompts", prefixes, "--out", out, "--new-tokens")
    refused(capsys, *options, 0)
    assert not (tmp_path / "new").exists()
    complete(*options, 2)
    assert len(lines(out)) == 4


def test_a_file_is_gone_on_with_however_the_model_is_spelled(
    causal: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--prompts", prefixes, "--out", tmp_path / "out", "--new-tokens", 4]
    complete(causal, *options)
    meta = (tmp_path / "out.meta.json").read_bytes()
    monkeypatch.chdir(causal.parent)
    capsys.readouterr()
    complete(f"./{causal.name}/", *options)
    assert "4 of them made before" in capsys.readouterr().err
    assert (tmp_path / "out.meta.json").read_bytes() == meta


def test_other_settings_are_refused(
    causal: Path, prefixes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [causal, "--prompts", prefixes, "--out", tmp_path / "out", "--new-tokens", 4]
    complete(*options)
    first = (tmp_path / "out").read_bytes()
    assert 'was begun with strategy "greedy"' in refused(capsys, *options, "--strategy", "top_k=5")
    assert (tmp_path / "out").read_bytes() == first
    complete(*options, "--strategy", "top_k=5", "--overwrite")
    assert (tmp_path / "out").read_bytes() != first
