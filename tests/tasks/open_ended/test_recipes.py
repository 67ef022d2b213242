"""The paper's recipe, number by number."""

import pytest

from scalegrad.objectives import Objective
from scalegrad.tasks.open_ended import recipes


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
