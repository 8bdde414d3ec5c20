"""The words of the log, and where they go."""
