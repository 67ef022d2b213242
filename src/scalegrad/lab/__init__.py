"""Experiments: what the paper did, at the scale of the machine at hand."""
