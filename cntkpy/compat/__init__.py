"""Interfaces under the names of other programs."""
