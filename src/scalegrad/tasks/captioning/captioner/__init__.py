"""The top-down attention captioner: two LSTMs over the region features of an image, as a Hugging Face model."""

from scalegrad.tasks.captioning.captioner.model import IGNORED, Captioner, CaptionerConfig, EncodedRegions

__all__ = ["IGNORED", "Captioner", "CaptionerConfig", "EncodedRegions"]
