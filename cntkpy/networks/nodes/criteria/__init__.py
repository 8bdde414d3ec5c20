"""Criteria: losses, errors, rankings, alignments."""
