"""Inputs, parameters and constants."""
