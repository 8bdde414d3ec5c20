"""Layers of Python, by what they do; `cntkpy.networks.builders.python.layers` has all of them."""
