"""Where the pairs come from, and the paper's sizes."""

import json

import pytest

from paper.printed import SETTINGS
from scalegrad.tasks.summarization.corpora import PAPER_SIZES, check_sizes, load_split


def folder_of(tmp_path, **counts):
    for split, count in counts.items():
        lines = [json.dumps({"id": f"{split}{i}", "article": f"A {i}.", "summary": "b"}) for i in range(count)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_folder_of_splits(tmp_path):
    folder = folder_of(tmp_path, train=3, dev=2, test=1)
    assert [pair.id for pair in load_split(folder, "train")] == ["train0", "train1", "train2"]
    assert [pair.id for pair in load_split(folder, "validation", limit=1)] == ["dev0"]
    assert len(load_split(folder / "test.jsonl", "test")) == 1


def test_what_is_not_there_is_said(tmp_path):
    folder = folder_of(tmp_path, test=1)
    with pytest.raises(ValueError, match=r"has no file or folder for train, such as train\.jsonl"):
        load_split(folder, "train")
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder \./none"):
        load_split("./none", "train")
    with pytest.raises(ValueError, match="limit must be at least 1, not 0"):
        load_split("scitldr", "test", limit=0)


def test_the_papers_sizes():
    assert PAPER_SIZES["cnn_dailymail"] == {"train": 287_227, "validation": 13_368, "test": 11_490}
    assert PAPER_SIZES["nyt50"] == {"train": 96_834, "validation": 4_000, "test": 3_452}
    assert PAPER_SIZES["nyt50"] == SETTINGS["nyt50"]["sizes"]
    assert PAPER_SIZES["cnn_dailymail"] == SETTINGS["cnn/dm"]["sizes"]


def test_other_sizes_than_the_papers_are_told():
    with pytest.warns(UserWarning, match=r"not the paper's sizes \(train 287,113, the paper's 287,227\)"):
        check_sizes("cnn_dailymail", {"train": 287_113, "validation": 13_368})
    with pytest.raises(ValueError, match="corpus must be one of cnn_dailymail, nyt50, not 'cnn'"):
        check_sizes("cnn", {})


def test_the_hubs_cnn_dailymail_is_compared_with_the_papers(monkeypatch):
    import datasets

    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, config: {"test": [{"id": "1", "article": "A.", "highlights": "b"}]}
    )
    with pytest.warns(UserWarning, match=r"test 1, the paper's 11,490"):
        assert len(load_split("cnn_dailymail", "test")) == 1
