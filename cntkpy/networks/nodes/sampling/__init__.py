"""Random samples."""
