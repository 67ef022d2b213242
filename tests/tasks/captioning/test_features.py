"""Region features from every kind of file, and what is wrong with some of them."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from scalegrad.data.records import Problems
from scalegrad.tasks.captioning.dataset import examples_of
from scalegrad.tasks.captioning.features import open_features
from scalegrad.tasks.captioning.paragraphs import Captioned

REGIONS = {"7": np.arange(6, dtype=np.float32).reshape(2, 3), "12": np.ones((5, 3), dtype=np.float16)}


@pytest.fixture(params=["npz", "safetensors", "h5", "groups", "npy folder", "npz folder"])
def written(request, tmp_path):
    if request.param == "npz":
        np.savez(tmp_path / "all.npz", **REGIONS)
        return tmp_path / "all.npz"
    if request.param == "safetensors":
        save_file({name: torch.from_numpy(value) for name, value in REGIONS.items()}, tmp_path / "all.safetensors")
        return tmp_path / "all.safetensors"
    if request.param in ("h5", "groups"):
        with h5py.File(tmp_path / "all.h5", "w") as file:
            for name, value in REGIONS.items():
                file[name if request.param == "h5" else f"{name}/features"] = value
        return tmp_path / "all.h5"
    for name, value in REGIONS.items():
        if request.param == "npy folder":
            np.save(tmp_path / f"{name}.npy", value)
        else:
            np.savez(tmp_path / f"{name}.npz", feat=value, boxes=np.zeros((len(value), 4)))
    return tmp_path


def test_every_kind_of_file_gives_the_same_numbers(written):
    features = open_features(written)
    for name, value in REGIONS.items():
        assert name in features
        assert features[name].dtype == torch.float32
        assert features[name].tolist() == value.tolist()
    assert "8" not in features
    with pytest.raises(KeyError):
        features["8"]


def test_grids_and_vectors_become_regions(tmp_path):
    np.save(tmp_path / "grid.npy", np.arange(24, dtype=np.float32).reshape(2, 4, 3))
    np.save(tmp_path / "one.npy", np.zeros(3, dtype=np.float32))
    features = open_features(tmp_path)
    assert features["grid"].shape == (8, 3)
    assert features["grid"][5].tolist() == [15.0, 16.0, 17.0]
    assert features["one"].shape == (1, 3)


def broken_files(folder):
    """What may be wrong with a file of features, and what is said of it."""
    np.save(folder / "text.npy", np.array(["a", "b"]))
    np.save(folder / "empty.npy", np.zeros((0, 3), dtype=np.float32))
    np.save(folder / "four.npy", np.zeros((1, 2, 3, 4), dtype=np.float32))
    np.save(folder / "nan.npy", np.array([[1.0, np.nan, 0.0]]))
    np.save(folder / "pickle.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(folder / "whole.npy", np.ones((400, 3), dtype=np.float32))
    (folder / "torn.npy").write_bytes((folder / "whole.npy").read_bytes()[:900])
    (folder / "none.npy").write_bytes(b"")
    np.savez(folder / "names.npz", boxes=np.zeros((2, 4)))
    return {
        "empty": "holds 0×3",
        "four": "holds 1×2×3×4",
        "nan": "not finite",
        "pickle": "cannot be read",
        "torn": "cannot be read",
        "none": "cannot be read",
        "names": "it holds boxes, none of features",
    }


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    features = open_features(tmp_path)
    for name, said in broken_files(tmp_path).items():
        with pytest.raises(ValueError, match=said):
            features[name]
    assert "../whole" not in features


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "h5"])
def test_a_file_that_is_none_of_its_kind(tmp_path, suffix):
    path = tmp_path / f"all.{suffix}"
    path.write_bytes(b"no features at all")
    with pytest.raises(ValueError, match=rf"all\.{suffix} cannot be read as"):
        open_features(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_features(tmp_path / f"other.{suffix}")


def test_an_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match="features are a folder"):
        open_features(tmp_path / "all.pkl")


def test_bad_items_are_named_and_counted_or_stop_the_work(tmp_path):
    for name in ("7", "8"):
        np.save(tmp_path / f"{name}.npy", np.ones((2, 3), dtype=np.float32))
    np.save(tmp_path / "9.npy", np.ones((2, 4), dtype=np.float32))
    (tmp_path / "10.npy").write_bytes(b"torn")
    items = [Captioned(name, "", "a dog.") for name in ("7", "11", "8", "9", "10")]
    problems = Problems(skip=True)
    found = examples_of(items, open_features(tmp_path), problems)
    assert [example.image_id for example in found] == ["7", "8"]
    assert problems.count == 3
    assert problems.places["no features"] == ["image 11"]
    assert problems.places["features of another size than 3"] == ["image 9 (4)"]
    with pytest.raises(ValueError, match="image 11: no features"):
        examples_of(items, open_features(tmp_path))
    with pytest.raises(ValueError, match="no image of 1 has features"):
        examples_of(items[1:2], open_features(tmp_path), Problems(skip=True))
