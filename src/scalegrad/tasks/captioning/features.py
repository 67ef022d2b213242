"""Region features by image id: read from npz, npy per image, safetensors or HDF5; written as safetensors."""

from __future__ import annotations

import weakref
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from scalegrad.extras import need

SUFFIXES = {".npz": "npz", ".safetensors": "safetensors", ".h5": "hdf5", ".hdf5": "hdf5"}
OF_REGIONS = ("features", "feat", "att_feat", "arr_0")  # names under which one image's npz keeps them, best first


class Features(Protocol):
    """Region features by image id."""

    def __getitem__(self, image_id: str) -> Tensor:
        """[R, F] float32; KeyError if there are none, ValueError if what is there cannot be read."""

    def __contains__(self, image_id: object) -> bool:
        """Whether there is something under this id."""


def open_features(path: str | Path) -> Features:
    """The features at `path`: a folder with a file for each image (ID.npy or ID.npz), or one file for all of them.

    One file is .npz, .safetensors, .h5 or .hdf5, with an array [R, F] for each image id; in HDF5 an id may also be a
    group with a dataset `features`. Arrays are read when they are asked for.
    """
    path = Path(path)
    if path.is_dir():
        return _Folder(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: region features are a folder of .npy or .npz files, or one {', '.join(SUFFIXES)} file"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of region features")
    kind = SUFFIXES[path.suffix]
    try:
        if kind == "npz":
            return _File(path, need("numpy", extra="caption").load(path, allow_pickle=False))
        if kind == "safetensors":
            opened = need("safetensors", extra="caption").safe_open(str(path), "pt")
            return _File(path, _Safetensors(opened))
        return _File(path, need("h5py", extra="caption").File(path, "r"))
    except (OSError, ValueError, zipfile.BadZipFile, need("safetensors", extra="caption").SafetensorError) as error:
        raise ValueError(f"{path} cannot be read as {kind} ({_first_line(error)})") from None


def save_features(path: Path, features: Mapping[str, Tensor]) -> None:
    """Write one safetensors file with an array for each image id."""
    need("safetensors.torch", extra="caption").save_file(
        {image_id: value.contiguous() for image_id, value in features.items()}, path
    )


class _Folder:
    """A file for each image."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, image_id: str) -> Path | None:
        if "/" in image_id or "\\" in image_id:
            return None  # an id names a file of this folder and of no other
        found = (self.folder / f"{image_id}{suffix}" for suffix in (".npy", ".npz"))
        return next((path for path in found if path.is_file()), None)

    def __contains__(self, image_id: object) -> bool:
        return isinstance(image_id, str) and self._path(image_id) is not None

    def __getitem__(self, image_id: str) -> Tensor:
        path = self._path(image_id)
        if path is None:
            raise KeyError(image_id)
        numpy = need("numpy", extra="caption")
        try:
            content = numpy.load(path, allow_pickle=False)
            if path.suffix == ".npz":
                name = next((name for name in OF_REGIONS if name in content), None)
                if name is None:
                    raise ValueError(f"it holds {', '.join(content)}, none of {', '.join(OF_REGIONS)}")
                content = content[name]
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path.name} cannot be read ({_first_line(error)})") from None
        return checked(content, path.name)


class _File:
    """One file with an array for each image."""

    def __init__(self, path: Path, arrays: Any) -> None:
        self.path, self.arrays = path, arrays
        if hasattr(arrays, "close"):
            weakref.finalize(self, arrays.close)  # the file stays open for as long as it may be asked

    def __contains__(self, image_id: object) -> bool:
        return image_id in self.arrays

    def __getitem__(self, image_id: str) -> Tensor:
        if image_id not in self.arrays:
            raise KeyError(image_id)
        try:
            content = self.arrays[image_id]
            content = content["features"] if hasattr(content, "keys") else content
            content = content if isinstance(content, Tensor) else content[...]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path.name}, {image_id} cannot be read ({_first_line(error)})") from None
        return checked(content, f"{self.path.name}, {image_id}")


class _Safetensors:
    def __init__(self, opened: Any) -> None:
        self.opened, self.names = opened, set(opened.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Tensor:
        return self.opened.get_tensor(name)  # type: ignore[no-any-return]


def checked(content: Any, name: str) -> Tensor:
    """An array as [R, F] float32 features; a grid [H, W, F] becomes H·W regions, a vector [F] one.

    >>> checked(torch.ones(2, 2, 5), "7.npy").shape
    torch.Size([4, 5])
    """
    features = torch.as_tensor(content)
    if features.dim() == 3:
        features = features.flatten(0, 1)
    elif features.dim() == 1:
        features = features[None]
    if (
        features.dim() != 2
        or 0 in features.shape
        or not (features.is_floating_point() or features.dtype == torch.uint8)
    ):
        shape = "×".join(map(str, torch.as_tensor(content).shape))
        raise ValueError(f"{name} holds {shape} {features.dtype} values; expected features [regions, size]")
    features = features.float()
    if not bool(torch.isfinite(features).all()):
        raise ValueError(f"{name} holds values that are not finite")
    return features


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
