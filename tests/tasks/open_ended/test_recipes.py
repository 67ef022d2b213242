"""The paper's recipe, number by number, and what the command line makes of it."""

import pytest

from scalegrad.objectives import Objective
from scalegrad.tasks.open_ended import recipes
from scalegrad.tasks.open_ended.train_command import _asked


def test_the_papers_numbers():
    """Section 4.1 and the table of hyper-parameters for open-ended generation."""
    recipe = recipes.find("paper")
    config, settings = recipe.config, recipe.config.settings
    assert config.model == "openai-community/gpt2-medium"
    assert config.data == ("Salesforce/wikitext:wikitext-103-v1:train",)
    assert (config.length, settings.batch, settings.accumulation) == (300, 1, 1)
    assert (settings.learning_rate, settings.max_steps, settings.evaluate_every) == (2e-5, 35_000, 1_000)
    assert (config.protocol, config.validation, recipe.seeds) == ("paper", "wikitext-103:valid", 3)
    assert recipes.paper("ul=1.5").config.objective == Objective("ul", 1.5)
    with pytest.raises(ValueError, match="recipe must be paper, not 'soup'"):
        recipes.find("soup")


def asked(**given):
    everything = dict.fromkeys(
        ("recipe", "model", "data", "objective", "gamma", "alpha", "seeds", "max_steps", "epochs", "batch")
    )
    return _asked({**everything, "trust_remote_code": False, "lora_dropout": None, **given})


def test_options_replace_what_the_recipe_says():
    found = asked(recipe="paper", objective="ul", alpha=0.5, epochs=2.0, batch=4, seeds=1, model="gpt2")
    settings = found.config.settings
    assert (found.config.model, found.config.objective, found.seeds) == ("gpt2", Objective("ul", 0.5), 1)
    assert (settings.epochs, settings.max_steps, settings.batch) == (2.0, None, 4)
    assert settings.learning_rate == 2e-5  # not given: the recipe's


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "sg=0.2"),
        ({"objective": "mle"}, "mle"),
        ({"objective": "ul"}, "ul=1.0"),
        ({"gamma": "0.5"}, "sg=0.5"),
        ({"objective": "sg", "gamma": "linear:1.0:0.2:100"}, "sg=linear:1.0:0.2:100"),
        ({"objective": "sg=0.8"}, "sg=0.8"),
    ],
)
def test_the_objective(given, expected):
    assert str(asked(model="gpt2", data=["a.txt"], **given).config.objective) == expected
