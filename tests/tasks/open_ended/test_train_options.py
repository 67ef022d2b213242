"""Where the options of `scalegrad train` come from: the command line, a recipe, or the config.json of a run."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from scalegrad.cli import main
from scalegrad.objectives import Objective
from scalegrad.options import values
from scalegrad.runs.atomic import plain
from scalegrad.tasks.open_ended import recipes, train_command
from scalegrad.tasks.open_ended.config import TrainConfig
from scalegrad.tasks.open_ended.training import _asked
from scalegrad.training import Settings


@pytest.fixture
def configs(monkeypatch, tmp_path):
    """configs("base", "text"): what `scalegrad train base text` would train, a configuration for each seed."""
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train_command, "_check", lambda config: None)
    monkeypatch.setattr(train_command, "_report", lambda *_: None)
    monkeypatch.setattr(train_command, "_train", lambda config, *_: seen.append(config))

    def run(*words):
        seen.clear()
        with pytest.raises(SystemExit) as end:
            main(["train", *map(str, words)])
        assert end.value.code == 0
        return list(seen)

    return run


def test_every_field_of_the_configuration_is_an_option(configs):
    (config,) = configs("base", "text.txt")
    assert config == TrainConfig("base", ("text.txt",))
    names = {field.name for field in fields(TrainConfig)} - {"settings", "fields"}
    assert names | {field.name for field in fields(Settings)} <= set(values(config))


def test_typed_options_reach_their_fields(configs):
    words = "--batch 4 --lr 1e-3 --dtype float32 --tracker none --field body --lora 8 --compile --prompt-seen --seed 7"
    (config,) = configs("base", "a.jsonl", "b.jsonl", *words.split(), "-o", "ul", "--alpha", "0.5")
    settings = Settings(batch=4, learning_rate=1e-3, dtype="float32", tracker=("none",), compile=True, seed=7)
    assert config.settings == settings
    assert (config.data, config.lora, config.prompt_seen) == (("a.jsonl", "b.jsonl"), 8, True)
    assert (config.fields.field, config.objective) == ("body", Objective("ul", 0.5))


def test_a_recipe_gives_what_was_not_typed(configs):
    paper = recipes.find("paper")
    by_recipe = configs("--recipe", "paper")
    assert by_recipe == [
        replace(paper.config, settings=replace(paper.config.settings, seed=seed)) for seed in range(paper.seeds)
    ]
    (config,) = configs("base", "text.txt", "--recipe", "paper", "--seeds", 1, "--batch", 2, "--gamma", 0.5)
    assert (config.model, config.data, config.objective) == ("base", ("text.txt",), Objective("sg", 0.5))
    assert config.settings == replace(paper.config.settings, batch=2)
    (config,) = configs("--recipe", "paper", "--seeds", 1, "--epochs", 2)
    assert (config.settings.epochs, config.settings.max_steps) == (2.0, None)


def test_the_config_of_a_run_gives_what_was_not_typed(configs, tmp_path):
    settings = Settings(max_steps=5, batch=3, warmup_steps=0.1, dtype="bfloat16", seed=2)
    config = TrainConfig("base", ("a.txt", "b.txt"), objective=Objective("ul", 0.5), length=64, settings=settings)
    (tmp_path / "config.json").write_text(json.dumps(plain(_asked(config))))
    assert configs("--config", tmp_path / "config.json") == [config]
    (other,) = configs("--config", tmp_path / "config.json", "--length", 32)
    assert other == replace(config, length=32)
