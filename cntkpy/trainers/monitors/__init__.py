"""Monitors of a network that trains: traces, checks of gradients and of numbers."""
