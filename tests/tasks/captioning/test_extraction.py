"""Features from images by transformers' detectors and backbones: tiny ones with random weights, saved to a folder."""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from PIL import Image

from scalegrad.data.records import Problems
from scalegrad.tasks.captioning.extraction import extract, features_of, images_in, load_extractor, read_image
from scalegrad.tasks.captioning.scenes import make_scene

PLAIN = {"do_normalize": False, "do_rescale": True}


def resnet_config(**more):
    sizes = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1]}
    return hf.ResNetConfig(layer_type="basic", **sizes, **more)


@pytest.fixture
def saved(tmp_path):
    """saved(kind) -> a folder with a tiny model and its image processor."""

    def save(kind):
        torch.manual_seed(0)
        folder = tmp_path / kind
        if kind == "resnet":
            hf.ResNetModel(resnet_config()).eval().save_pretrained(folder)
            hf.ConvNextImageProcessorPil(size={"shortest_edge": 384}, **PLAIN).save_pretrained(folder)
        elif kind == "vit":
            sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
            hf.ViTModel(hf.ViTConfig(image_size=32, patch_size=8, **sizes)).eval().save_pretrained(folder)
            hf.ViTImageProcessorPil(size={"height": 32, "width": 32}, **PLAIN).save_pretrained(folder)
        else:
            layers = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in
                      (("layers", 1), ("ffn_dim", 8), ("attention_heads", 2))}  # fmt: skip
            config = hf.DetrConfig(
                use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, num_queries=15, num_labels=3,
                d_model=8, backbone_config=resnet_config(out_features=["stage2"]), **layers,
            )  # fmt: skip
            hf.DetrForObjectDetection(config).eval().save_pretrained(folder)
            hf.DetrImageProcessorPil(size={"shortest_edge": 64, "longest_edge": 64}).save_pretrained(folder)
        return folder

    return save


@pytest.fixture
def folder(tmp_path):
    """Three pictures, one of them cut short."""
    images = tmp_path / "images"
    images.mkdir()
    for number in range(3):
        make_scene("train", number).image.resize((80, 60)).save(images / f"{number}.png")
    whole = (images / "1.png").read_bytes()
    (images / "1.png").write_bytes(whole[: len(whole) // 2])
    (images / "notes.txt").write_text("no image")
    return images


def expected(kind, folder, image):
    """The regions of one image, straight from the model."""
    if kind == "resnet":
        model, processor = hf.ResNetModel.from_pretrained(folder), hf.ConvNextImageProcessorPil.from_pretrained(folder)
        with torch.no_grad():
            grid = model.eval()(**processor(images=[image], return_tensors="pt")).last_hidden_state[0]
        return torch.stack([grid[:, row, column] for row in range(grid.shape[1]) for column in range(grid.shape[2])])
    if kind == "vit":
        model, processor = hf.ViTModel.from_pretrained(folder), hf.ViTImageProcessorPil.from_pretrained(folder)
        with torch.no_grad():
            return model.eval()(**processor(images=[image], return_tensors="pt")).last_hidden_state[0, 1:]
    model, processor = (
        hf.DetrForObjectDetection.from_pretrained(folder),
        hf.DetrImageProcessorPil.from_pretrained(folder),
    )
    with torch.no_grad():
        out = model.eval()(**processor(images=[image], return_tensors="pt"))
    sure = out.logits[0].softmax(dim=-1)[:, :-1].amax(dim=-1)
    kept = max(10, int((sure > 0.2).sum()))
    chosen = sure.argsort(descending=True)[:kept]
    return torch.cat([out.last_hidden_state[0][chosen], out.pred_boxes[0][chosen]], dim=1)


@pytest.mark.parametrize(("kind", "size"), [("resnet", 8), ("vit", 8), ("detr", 12)])
def test_regions_of_each_kind_of_model(saved, folder, kind, size):
    path = saved(kind)
    images = {"0": folder / "0.png", "2": folder / "2.png"}
    found = extract(images, load_extractor(str(path)))
    for name, regions in found.items():
        wanted = expected(kind, path, read_image(images[name]))
        assert regions.shape == wanted.shape
        assert regions.shape[1] == size
        torch.testing.assert_close(regions, wanted, atol=1e-4, rtol=1e-3)
    assert not torch.equal(found["0"][:1], found["2"][:1])


@pytest.mark.parametrize("kind", ["conditional", "yolos"])
def test_detectors_unlike_detr_are_refused(tmp_path, folder, kind):
    """One scores by sigmoid, without a class for nothing; the other's states are those of patches too."""
    if kind == "yolos":
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
        config = hf.YolosConfig(image_size=[64, 64], patch_size=16, num_detection_tokens=5, num_labels=3, **sizes)
        model = hf.YolosForObjectDetection(config)
    else:
        layers = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in
                  (("layers", 1), ("ffn_dim", 8), ("attention_heads", 2))}  # fmt: skip
        config = hf.ConditionalDetrConfig(
            use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, num_queries=15, num_labels=3,
            d_model=8, backbone_config=resnet_config(out_features=["stage2"]), **layers,
        )  # fmt: skip
        model = hf.ConditionalDetrForObjectDetection(config)
    model.save_pretrained(tmp_path / kind)
    hf.DetrImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(tmp_path / kind)
    with pytest.raises(ValueError, match=r"ForObjectDetection is no detector like DETR, with a state for each box"):
        extract({"0": folder / "0.png"}, load_extractor(str(tmp_path / kind)))


def test_a_truncated_image_is_named_and_counted_or_stops_the_work(folder):
    images = {**images_in(folder), "9": folder / "9.png"}
    assert sorted(images) == ["0", "1", "2", "9"]
    problems, seen = Problems(skip=True), []
    found = extract(images, load_extractor(), problems, lambda done, total: seen.append((done, total)))
    assert sorted(found) == ["0", "2"]
    assert problems.count == 2
    assert "1.png cannot be read as an image" in str(problems)
    assert "1 × no image file" in str(problems)
    assert seen == [(4, 4)]
    with pytest.raises(ValueError, match=r"1\.png cannot be read as an image"):
        extract(images, load_extractor())


def test_features_are_kept_until_an_image_changes(folder, tmp_path):
    problems = Problems(skip=True)
    kept = tmp_path / "kept"
    first = features_of(folder, "scenes", kept, problems)
    assert problems.count == 1
    again = Problems(skip=False)  # nothing is read again, so nothing is found wrong
    assert torch.equal(features_of(folder, "scenes", kept, again)["0"], first["0"])
    assert len(list(kept.iterdir())) == 1
    Image.new("RGB", (96, 96)).save(folder / "0.png")
    changed = features_of(folder, "scenes", kept, Problems(skip=True))
    assert len(list(kept.iterdir())) == 2
    assert changed["0"].shape != first["0"].shape or not torch.equal(changed["0"], first["0"])


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(ValueError, match="cannot be loaded as a detector or vision backbone"):
        load_extractor(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no such folder"):
        images_in(tmp_path / "none")
    with pytest.raises(ValueError, match="holds no image"):
        images_in(tmp_path)
