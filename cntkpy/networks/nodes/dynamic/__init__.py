"""Axes of samples that become those of sequences and minibatches, and back."""
