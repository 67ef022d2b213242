"""The open-ended experiments, done once with a tiny model and two seeds, for the tests that look at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper import open_ended, open_ended_decoding
from paper.catalogue import find, prepare
from paper.outcome import Outcome, Setup
from tests.tasks.open_ended.conftest import tiny_model, tiny_tokenizer

OPEN_ENDED = ("wikitext", "decoding", "lengths", "sensitivity")


@pytest.fixture(scope="session")
def small() -> tuple[Any, Any]:
    """(model, tokenizer): room for continuations of 300 tokens."""
    tokenizer = tiny_tokenizer()
    return tiny_model(len(tokenizer), positions=400), tokenizer


@pytest.fixture(scope="session")
def saved_small(small: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, in a folder called tiny."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    for part in small:
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def setup(saved_small: Path, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """Everything in seconds, with two seeds."""
    return Setup("smoke", tmp_path_factory.mktemp("reproduction"), str(saved_small), seeds=2)


@pytest.fixture(scope="session")
def done(setup: Setup) -> dict[str, Outcome]:
    """Every open-ended experiment that needs no further text."""
    assert prepare(find(OPEN_ENDED), setup) == ({}, {})
    experiments = (*open_ended.EXPERIMENTS, *open_ended_decoding.EXPERIMENTS)
    return {e.name: e.show(setup) for e in experiments if e.name in OPEN_ENDED}
