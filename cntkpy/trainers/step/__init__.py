"""Minibatches in stacks of equal shape, and the compiled step over them."""
