"""Experiments: recipes, sweeps, the demonstration and the paper's tables."""
