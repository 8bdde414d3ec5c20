"""The files of a training, and where to resume."""
