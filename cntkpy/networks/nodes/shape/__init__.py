"""Shapes and axes of samples."""
