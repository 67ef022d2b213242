"""The tiny model of the open-ended tests, for experiments."""

from tests.tasks.open_ended.conftest import saved as saved_tiny
from tests.tasks.open_ended.conftest import text_file as tiny_text
from tests.tasks.open_ended.conftest import tiny

__all__ = ["saved_tiny", "tiny", "tiny_text"]
