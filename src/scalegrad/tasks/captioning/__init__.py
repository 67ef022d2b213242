"""Image paragraph captioning: drawn scenes or your own images and paragraphs, to a captioner and its scores."""
