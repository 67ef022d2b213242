"""What `train` says and refuses before the first step, and how long it validates."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from scalegrad import decoding
from scalegrad.objectives import parse
from scalegrad.runs import Run
from scalegrad.tasks.open_ended import data, training
from scalegrad.tasks.open_ended.config import TrainConfig
from scalegrad.tasks.open_ended.training import train
from scalegrad.training import Reporter, Settings
from tests.tasks.open_ended.conftest import tiny_model

QUICK = Settings(max_steps=2, batch=2, tracker=())


class Loaded(AssertionError):
    """Weights were loaded, or text was read, before the mistake was seen."""


@pytest.fixture
def no_work(monkeypatch):
    """Neither weights nor data may be touched."""

    def refuse(*_, **__):
        raise Loaded

    monkeypatch.setattr(training, "load", refuse)
    monkeypatch.setattr(training, "read_examples", refuse)
    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", refuse)


@pytest.fixture
def broken(saved, tmp_path):
    """make(what): a folder with a mistake in it."""

    def make(what):
        folder = tmp_path / what
        shutil.copytree(saved, folder)
        if what == "larger":
            shutil.rmtree(folder)
            tiny_model(300).save_pretrained(folder)
            decoding.load_tokenizer(str(saved)).save_pretrained(folder)
        elif what == "none":
            for file in folder.glob("*token*"):
                file.unlink()
        elif what == "empty":
            shutil.rmtree(folder)
            folder.mkdir()
        return str(folder)

    return make


def test_the_second_run_of_a_sweep_reads_nothing_again(saved, text_file, tmp_path, monkeypatch):
    """Same text, length and model: the tokenizer is loaded once and the text read once, and validation is reported."""
    loads, reads, calls = [], [], []

    def counting(function, seen):
        return lambda *arguments, **options: seen.append(str(arguments[0])) or function(*arguments, **options)

    monkeypatch.setattr(training, "load_tokenizer", counting(training.load_tokenizer, loads))
    monkeypatch.setattr(data, "read_records", counting(data.read_records, reads))
    config = TrainConfig(str(saved), (str(text_file),), length=32, settings=QUICK)
    report = Reporter(lambda *call: calls.append(call), "mle")
    first = train(replace(config, objective=parse("mle")), tmp_path / "mle", callbacks=[report])
    second = train(replace(config, objective=parse("sg=0.5")), tmp_path / "sg")
    assert (len(loads), len(reads)) == (1, 1)
    assert first.run.config["data"] == second.run.config["data"]
    validations = [(done, total) for what, done, total in calls if "validating" in what]
    assert validations
    assert all(done <= total for done, total in validations)
    assert validations[-1][0] == validations[-1][1]


MISTAKES = [
    ("larger", "has a vocabulary of 300, and its tokenizer 400 ids"),
    ("none", "holds no tokenizer"),
    ("empty", "is an empty folder"),
]


@pytest.mark.parametrize(("what", "sentence"), MISTAKES)
def test_a_folder_that_cannot_be_trained_is_one_sentence(broken, text_file, tmp_path, no_work, what, sentence):
    with pytest.raises(ValueError, match=sentence) as mistake:
        train(TrainConfig(broken(what), (str(text_file),), settings=QUICK), tmp_path / "run")
    assert "\n" not in str(mistake.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("what", "sentence"), MISTAKES)
@pytest.mark.parametrize("verb", ["evaluate", "complete", "train"])
def test_every_verb_ends_with_exit_code_2(broken, text_file, no_work, capsys, verb, what, sentence):
    from scalegrad.cli import main

    more = {"evaluate": (), "complete": ("--protocol", "paper"), "train": (str(text_file),)}[verb]
    folder = broken(what)
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([verb, folder, *more])
    errors = capsys.readouterr().err
    assert end.value.code == 2
    *before, last = errors.splitlines()
    assert sentence in last
    assert all(line.startswith("loading ") for line in before)


def test_a_folder_of_a_llama_without_a_tokenizer(tmp_path):
    """Its kind of tokenizer cannot be made empty: the library alone says three things at once."""
    import transformers as hf

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=10, **sizes)).save_pretrained(tmp_path)
    for load in (decoding.load, decoding.load_tokenizer):
        with pytest.raises(ValueError, match="holds no tokenizer"):
            load(str(tmp_path))


def test_a_special_symbol_beyond_the_vocabulary_is_no_harm(saved, tmp_path):
    """Gemma 3 has one for images; its start and end symbols must be within."""
    tokenizer = decoding.load_tokenizer(str(saved))
    size = len(tokenizer)
    tiny_model(size).save_pretrained(tmp_path)
    tokenizer.add_special_tokens({"extra_special_tokens": ["<image>"]})
    tokenizer.save_pretrained(tmp_path)
    model, loaded = decoding.load(str(tmp_path), "cpu")
    assert (model.config.vocab_size, len(loaded)) == (size, size + 1)
    tokenizer.add_special_tokens({"eos_token": "<image>"})
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"vocabulary of {size}, and its tokenizer {size + 1} ids"):
        decoding.load(str(tmp_path), "cpu")


def validated(run):
    return run.config["sequences"]["validation"]["sequences"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 8),  # every step: twice the 4 sequences it trains on
        ({"settings": replace(QUICK, max_steps=2, evaluate_every=2, batch=2, accumulation=2)}, 16),
        ({"validation_sequences": 11}, 11),
        ({"validation_sequences": 10_000}, 20),  # all of them
    ],
)
def test_validation_takes_no_longer_than_the_training_before_it(saved, text_file, tmp_path, changes, expected):
    """A forward pass is less than half of a training pass, so twice the sequences; a count of one's own is taken."""
    settings = replace(QUICK, batch=4, evaluate_every=1)
    (tmp_path / "valid.txt").write_text(text_file.read_text())
    config = TrainConfig(str(saved), (str(text_file),), length=20, settings=settings)
    config = replace(config, validation=str(tmp_path / "valid.txt"), **changes)
    lines: list[str] = []
    run = train(config, tmp_path / "run", log=lines.append).run
    held = validated(train(replace(config, validation_sequences=10_000), tmp_path / "all").run)
    assert validated(run) == (held if expected == 20 else expected)
    said = [line for line in lines if line.startswith("validation: ")]
    assert len(said) == ("validation_sequences" not in changes)
    assert all(f"{expected} of {held}" in line and "--validation-sequences" in line for line in said)
    assert Run.open(run.path).config == run.config


def test_longer_validation_texts_are_fewer(saved, text_file, tmp_path):
    """By tokens, not by sequences: a validation set of longer sequences must not take longer either."""
    pairs = [{"prompt": "a", "completion": " b" * 3}] * 40
    (tmp_path / "short.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    long = [{"prompt": "a", "completion": " b" * 100}] * 40
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in long))
    settings = replace(QUICK, batch=10, evaluate_every=1, max_steps=1)
    config = TrainConfig(str(saved), (str(tmp_path / "short.jsonl"),), length=100, settings=settings)
    config = replace(config, validation=str(tmp_path / "long.jsonl"))
    run = train(config, tmp_path / "run").run
    trained = run.config["sequences"]["train"]["targets"] / 40 + 1  # tokens in a sequence
    assert validated(run) == int(2 * 10 * trained / 100)


def test_validation_of_the_papers_recipe_is_whole():
    """One sequence a step, 1,000 steps between validations: all of WikiText-103's validation text."""
    from scalegrad.tasks.open_ended.recipes import find

    settings = find("paper").config.settings
    assert training.most_validated(settings, 100_000, 300.0, 300.0) == (2_000, 1_000)


def test_a_line_says_what_was_read(saved, text_file, tmp_path):
    pairs = [{"prompt": "the end", "completion": " of the road"}] * 30
    pairs.append({"prompt": "x", "completion": " the end" * 99})
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    lines: list[str] = []
    config = TrainConfig(str(saved), (str(tmp_path / "pairs.jsonl"),), length=40, settings=QUICK)
    train(config, tmp_path / "run", log=lines.append)
    (line,) = [line for line in lines if line.startswith("data: ")]
    for words in ("31 records", "1 completion", "no prompt"):
        assert words in line
    lines.clear()
    train(TrainConfig(str(saved), (str(text_file),), length=40, settings=QUICK), tmp_path / "texts", log=lines.append)
    assert any(line.startswith("data: ") and "sequences of 40" in line for line in lines)
    assert any(line.startswith("start symbol: none") for line in lines)


def test_training_reads_the_start_symbol_too(with_start, text_file, tmp_path):
    _, tokenizer, folder = with_start
    lines: list[str] = []
    config = TrainConfig(str(folder), (str(text_file),), length=40, settings=QUICK)
    run = train(config, tmp_path / "run", log=lines.append).run
    assert run.config["sequences"]["train"]["start"] == [tokenizer.bos_token_id]
    assert any("start symbol: <s> before every sequence" in line for line in lines)
    assert decoding.start_ids(decoding.load_tokenizer(str(run.model_path))) == (tokenizer.bos_token_id,)
