"""Models of our own, as Hugging Face models."""
