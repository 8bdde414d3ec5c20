"""The operators of Python programs."""
