"""Numba kernels, and their pure-Python fallbacks for amounts of data that do not repay importing Numba."""
