"""Experiments: the paper's problems and settings by name."""
