"""Fewer blocks of human text than a user gets, for speed."""

import pytest

from scalegrad.results.measure import side_by_side


@pytest.fixture(autouse=True, scope="session")
def few_human_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_by_side, "_ENOUGH", 500)
        yield
