import pytest

from tests.tiny_bert import save_tiny_bert


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory):
    return save_tiny_bert(tmp_path_factory.mktemp("bert"))
