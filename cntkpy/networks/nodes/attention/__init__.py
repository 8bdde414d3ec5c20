"""Attention over sequences."""
