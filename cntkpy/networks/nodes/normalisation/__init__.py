"""Normalisation by statistics."""
