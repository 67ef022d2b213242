"""Region features from images: by the scenes' detector, or a DETR-like detector or vision backbone of transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from scalegrad.data.records import Problems
from scalegrad.extras import need
from scalegrad.models.pretrained import find_device
from scalegrad.runs import replacing
from scalegrad.runs.progress import Done, Progress, bind
from scalegrad.tasks.captioning.detector import load_detector
from scalegrad.tasks.captioning.features import Features, open_features, save_features

if TYPE_CHECKING:
    from PIL.Image import Image

SCENES = "scenes"  # the name of the detector that comes with the package
BATCH = 16
MOST_REGIONS = 100
LEAST_REGIONS = 10  # of a detector: its surest, however unsure
CERTAIN = 0.2  # what a detector must give a region besides
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm")


class Extractor(Protocol):
    """Turns images into region features, [R, F] each."""

    def regions(self, images: Sequence[Image]) -> list[Tensor]: ...


def load_extractor(name: str = SCENES, device: str | torch.device = "cpu") -> Extractor:
    """The scenes' detector, or a transformers model by hub name or folder.

    A detector (DETR and its kin) gives the states of its surest object queries, 10 to 100 of them; a convolutional
    backbone (ResNet) the cells of its last feature map; a vision transformer (ViT, DINOv2) its patches.
    """
    if name == SCENES:
        return load_detector()
    hf = need("transformers", extra="caption")
    try:
        config = hf.AutoConfig.from_pretrained(name)
        processor = _processor(hf, name)
        if type(config) in hf.AutoModelForObjectDetection._model_mapping:
            return _Detector(hf.AutoModelForObjectDetection.from_pretrained(name), processor, device)
        return _Backbone(hf.AutoModel.from_pretrained(name), processor, device)
    except (OSError, ValueError, ImportError, AttributeError) as error:
        reason = " ".join(str(error).split(". ")[0].split())
        raise ValueError(f"{name} cannot be loaded as a detector or vision backbone ({reason})") from None


def _processor(hf: Any, name: str) -> Any:
    """What prepares images for a model. Some versions of transformers want torchvision for the automatic choice."""
    try:
        return hf.AutoImageProcessor.from_pretrained(name)
    except ImportError:
        settings, _ = hf.BaseImageProcessor.get_image_processor_dict(name)
        kind = str(settings.get("image_processor_type", "")).removesuffix("Fast").removesuffix("Pil")
        return getattr(hf, f"{kind}Pil").from_pretrained(name)


class _Detector:
    """The object queries of a detector: their last states."""

    def __init__(self, model: Any, processor: Any, device: str | torch.device) -> None:
        self.model, self.processor = model.to(device).eval(), processor

    @torch.no_grad()
    def regions(self, images: Sequence[Image]) -> list[Tensor]:
        output = self._checked(self.model(**_inputs(self.processor, images, self.model.device)))
        sure = output.logits.softmax(dim=-1)[..., :-1].amax(dim=-1)  # the last class is "nothing here"
        boxes = output.pred_boxes
        found = []
        for states, place, certainty in zip(output.last_hidden_state, boxes, sure, strict=True):
            order = certainty.argsort(descending=True)
            count = min(max(int((certainty > CERTAIN).sum()), LEAST_REGIONS), MOST_REGIONS, len(order))
            chosen = order[:count]
            found.append(torch.cat([states[chosen], place[chosen]], dim=1).float().cpu())
        return found

    def _checked(self, output: Any) -> Any:
        """What a DETR gives. Others score by sigmoid, with no class for nothing, or have states of patches too."""
        states, classes = getattr(output, "last_hidden_state", None), self.model.config.num_labels + 1
        if states is None or states.shape[1] != output.pred_boxes.shape[1] or output.logits.shape[-1] != classes:
            raise ValueError(
                f"extractor: {type(self.model).__name__} is no detector like DETR, with a state for each box and a "
                f'class for "nothing here"; name such a one, or a vision backbone'
            )
        return output


class _Backbone:
    """The cells of a feature map [F, H, W], or the patches [P, F] of a vision transformer, with their places."""

    def __init__(self, model: Any, processor: Any, device: str | torch.device) -> None:
        self.model, self.processor = model.to(device).eval(), processor

    @torch.no_grad()
    def regions(self, images: Sequence[Image]) -> list[Tensor]:
        inputs = _inputs(self.processor, images, self.model.device)
        states = self.model(**inputs).last_hidden_state
        if states.dim() == 4:
            states = states.flatten(2).transpose(1, 2)  # [N, H·W, F]
        else:
            states = states[:, states.shape[1] - _patches(self.model, inputs) :]  # without [CLS] and registers
        return list(states.float().cpu())


def _patches(model: Any, inputs: Mapping[str, Tensor]) -> int:
    patch = model.config.patch_size
    height, width = (patch, patch) if isinstance(patch, int) else patch
    return (inputs["pixel_values"].shape[-2] // height) * (inputs["pixel_values"].shape[-1] // width)


def _inputs(processor: Any, images: Sequence[Image], device: torch.device) -> dict[str, Tensor]:
    made = processor(images=[image.convert("RGB") for image in images], return_tensors="pt")
    return {name: value.to(device) for name, value in made.items() if name in ("pixel_values", "pixel_mask")}


def read_image(path: Path) -> Image:
    """An image, read to its end; a ValueError if it is truncated or no image."""
    pillow = need("PIL.Image", extra="caption")
    try:
        with pillow.open(path) as image:
            image.load()
            return image.convert("RGB")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise ValueError(f"{path.name} cannot be read as an image ({error})") from None


def images_in(folder: str | Path) -> dict[str, Path]:
    """The images of a folder by id, which is a file's name without its suffix."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder of images")
    found = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in IMAGE_SUFFIXES}
    if not found:
        raise ValueError(f"{folder} holds no image ({', '.join(IMAGE_SUFFIXES)})")
    return found


def extract(
    images: Mapping[str, Path | Image],
    extractor: Extractor,
    problems: Problems | None = None,
    progress: Done | None = None,
) -> dict[str, Tensor]:
    """Region features by id, of files or of images that are at hand; those that cannot be read go to `problems`."""
    problems = Problems() if problems is None else problems
    features: dict[str, Tensor] = {}
    names = list(images)
    for start in range(0, len(names), BATCH):
        read: dict[str, Image] = {}
        for name in names[start : start + BATCH]:
            item = images[name]
            try:
                read[name] = read_image(item) if isinstance(item, Path) else item
            except ValueError as error:
                problems.add("an image that cannot be read", f"{name} ({error})")
            except FileNotFoundError:
                problems.add("no image file", str(item))
        if read:
            features |= zip(read, extractor.regions(list(read.values())), strict=True)
        if progress:
            progress(min(start + BATCH, len(names)), len(names))
    return features


def features_of(
    folder: Path, name: str, cache: Path | None, problems: Problems, progress: Progress | None = None
) -> Features:
    """The features of a folder of images by the extractor `name`, kept in `cache`, a folder (None: not kept).

    A changed image (its size or date), another extractor or another set of images makes them anew.
    """
    images = images_in(folder)

    def make() -> dict[str, Tensor]:
        report = bind(progress, f"extracting features with {name}")
        return extract(images, load_extractor(name, find_device()), problems, report)

    if cache is None:
        return make()
    signature = hashlib.sha256(f"{name}\n".encode())
    for image_id, file in images.items():
        about = file.stat()
        signature.update(f"{image_id} {about.st_size} {about.st_mtime_ns}\n".encode())
    kept = cache / f"regions-{signature.hexdigest()[:16]}.safetensors"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        features = make()
        with replacing(kept) as unfinished:
            save_features(unfinished, features)
    return open_features(kept)
